"""The parts of a kernel module that are the same in every one."""

from __future__ import annotations

PRELUDE = """\
import warnings

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _disable_current_modes

try:
    import triton
    import triton.language as tl
except ImportError:  # every test below says no, and the original code runs
    from types import SimpleNamespace

    triton, tl = SimpleNamespace(jit=lambda function: function), SimpleNamespace(constexpr=lambda value: value)
    _TRITON = False
else:
    _TRITON = True
"""

MACHINERY = '''\
# Where the kernels may run
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_gpus: dict[int | None, bool] = {}
_right: dict[tuple[str, int | None], bool] = {}


@torch.compiler.assume_constant_result
def _tested_gpu(kind: str, index: int | None) -> bool:
    """Whether the device is an NVIDIA GPU of compute capability @MAJOR@.@MINOR@, for which the kernels were made."""
    if kind != "cuda" or not _TRITON or torch.version.hip is not None:
        return False
    if index not in _gpus:
        _gpus[index] = torch.cuda.get_device_capability(index) == (@MAJOR@, @MINOR@)
    return _gpus[index]


@torch.compiler.assume_constant_result
def _right_here(name: str, kind: str, index: int | None) -> bool:
    """Whether a region's kernels agree with its PyTorch code on this GPU, because compilers err: tried once, at their
    first use, unless they were tested on such a GPU with this Triton."""
    if kind != "cuda":  # an interpreter compiles nothing
        return True
    if (name, index) not in _right:
        here = torch.cuda.get_device_name(index), triton.__version__
        if _CASES[name][2] != here and torch.cuda.is_current_stream_capturing():
            return False  # nothing can be tried now
        _right[name, index] = _CASES[name][2] == here or _agrees(name, torch.device("cuda", index))
        if not _right[name, index]:
            warnings.warn(f"{name}: compiled by triton {here[1]} for {here[0]}, it is wrong; the original code runs")
    return _right[name, index]


def _agrees(name: str, device: torch.device) -> bool:
    try:
        with _disable_current_modes(), torch.no_grad():
            return all(error <= limit for error, limit in _errors(name, device))
    except RuntimeError as error:  # it does not compile, or there is no memory to try it in
        warnings.warn(f"{name}: {type(error).__name__}: {error}")
        return False


def _errors(name: str, device: torch.device) -> list[tuple[float, float]]:
    """Of each output, on random inputs: its largest difference to PyTorch's over PyTorch's largest value, and how much
    may be rounding."""
    kernel, reference, _, specs = _CASES[name]
    random, inputs = torch.Generator(device).manual_seed(0), []
    for shape, strides, dtype, deviation in specs:
        tensor = torch.empty_strided(shape, strides, dtype=dtype, device=device)
        inputs.append(tensor.normal_(std=deviation, generator=random) if dtype.is_floating_point else tensor.zero_())
    got, expected = kernel(*inputs), reference(*inputs)
    errors = []
    for one, other in zip(*((r,) if isinstance(r, torch.Tensor) else r for r in (got, expected))):
        error = (one.double() - other.double()).abs().max() / other.double().abs().max().clamp_min(1e-30)
        limit = max(8 * torch.finfo(other.dtype).eps, 1e-5) if other.is_floating_point() else 0.0
        errors.append((error.item(), limit))
    return errors


def _is_plain(module: torch.nn.Module, kind: str) -> bool:
    """Whether the module is of the class that was analysed, and nothing has been hooked into it."""
    return type(module).__qualname__ == kind and not module._forward_hooks and not module._forward_pre_hooks


def _runs_here(*tensors: torch.Tensor) -> bool:
    """Plain tensors on one tested GPU; no gradient, autocast, function transform or tracing by torch.jit."""
    if not torch.compiler.is_compiling() and (
        _transforms() or torch.jit.is_tracing() or forward_ad._current_level >= 0
    ):
        return False
    grad, device = torch.is_grad_enabled(), None
    for tensor in tensors:
        if type(tensor) not in _PLAIN and not (isinstance(tensor, torch.Tensor) and torch.compiler.is_exporting()):
            return False
        if grad and tensor.requires_grad:
            return False
        if device is None:
            device = tensor.device
        elif tensor.device != device:
            return False
    return _tested_gpu(device.type, device.index) and not torch.is_autocast_enabled(device.type)


def _plain_eager() -> bool:
    """Whether nothing traces or watches, so that a kernel may be launched without going through the dispatcher."""
    return not torch.compiler.is_compiling() and not _dispatch_modes()


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor with these strides, copied if it has others."""
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
'''

CHECK = '''\
def _check() -> None:
    """Compares every kernel with the code it replaces, on random inputs, on this machine's GPU."""
    device = torch.device("cuda", torch.cuda.current_device())
    for name in _CASES:
        if not _tested_gpu(device.type, device.index):
            print(f"{name}: not made for this GPU or this Triton; the original code runs")
            continue
        with torch.no_grad():
            for number, (error, limit) in enumerate(_errors(name, device)):
                verdict = "right" if error <= limit else "WRONG"
                print(f"{name}, output {number}: {verdict}, off by {error:.2e} of the largest value")


if __name__ == "__main__":
    if torch.cuda.is_available():
        _check()
    else:
        print("There is no GPU here: the original code runs.")
'''
