"""The kernel module: a Python file beside the user's, standing alone, with everything the edited file calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import mugraph
from mugraph.codegen.entry import entry_names, on_tensors, tensors_fit
from mugraph.codegen.kernel import KernelSource, Rejected
from mugraph.codegen.names import operator_name
from mugraph.codegen.plan import KernelStep, RegionPlan
from mugraph.codegen.record import VARIABLE, Record, record_text
from mugraph.codegen.wrapper import Wrapper, wrapper
from mugraph.codegen.wrapper_evidence import Speed, evidence
from mugraph.codegen.wrapper_operator import operator_text, torch_type, tuple_text
from mugraph.ir.target import TARGETS, Target

_PRELUDE = """\
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

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

_MACHINERY = '''\
# Where the kernels may run
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_gpus: dict[int | None, bool] = {}


@torch.compiler.assume_constant_result
def _tested_gpu(kind: str, index: int | None) -> bool:
    """Whether the device is an NVIDIA GPU of compute capability @MAJOR@.@MINOR@, for which the kernels were made."""
    if kind != "cuda" or not _TRITON or torch.version.hip is not None:
        return False
    if index not in _gpus:
        _gpus[index] = torch.cuda.get_device_capability(index) == (@MAJOR@, @MINOR@)
    return _gpus[index]


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

_CHECK = '''\
def _check() -> None:
    """Compares every kernel with the code it replaces, on random inputs, on this machine's GPU."""
    torch.manual_seed(0)
    for name, fits, kernel, reference, shapes in _CASES:
        inputs = [torch.empty_strided(shape, strides, dtype=dtype, device="cuda") for shape, strides, dtype in shapes]
        for tensor in inputs:
            if tensor.is_floating_point():
                tensor.normal_(std=0.5)
            else:
                tensor.zero_()
        with torch.no_grad():
            if not fits(*inputs):
                print(f"{name}: not made for this GPU or this Triton; the original code runs")
                continue
            got, expected = kernel(*inputs), reference(*inputs)
        if isinstance(got, torch.Tensor):
            got, expected = (got,), (expected,)
        for number, (one, other) in enumerate(zip(got, expected)):
            error = (one.double() - other.double()).abs().max() / other.double().abs().max()
            print(f"{name}, output {number}: largest difference {error.item():.2e} of the largest value")


if __name__ == "__main__":
    if torch.cuda.is_available():
        _check()
    else:
        print("There is no GPU here: the original code runs.")
'''

MODULE_NAMES = frozenset(
    node.name if isinstance(node, ast.FunctionDef) else node.id
    for node in ast.walk(ast.parse(_PRELUDE + _MACHINERY.replace("@MAJOR@", "9").replace("@MINOR@", "0")))
    if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
) | {VARIABLE, "_CASES", "_check", "torch", "triton", "tl", "forward_ad", "F"}


def module_text(
    plans: Sequence[RegionPlan],
    kernels: Mapping[str, KernelSource],
    *,
    original_path: Path,
    target: Target | None = None,
    speeds: Mapping[str, Speed] | None = None,
    record: Record | None = None,
) -> str:
    """Text of the kernel module for `original_path`.

    kernels: GraphKernel.name -> its source
    target:  the device the kernels were made for; they run on GPUs of exactly its compute capability. Without one, or
             with the CPU's interpreter, that of an H100 (9.0), which is what schedules are then estimated for.
    speeds:  plan name -> what was measured or estimated
    record:  what undoing the edit needs; None while the file is only being looked at

    Raises Rejected when the plans do not fit together.
    """
    kernels = _apart(kernels, plans)
    used = _used_kernels(plans, kernels)
    names = MODULE_NAMES | _global_names(plans, used)
    wrappers = [wrapper(plan, kernels, names) for plan in plans]
    capability = (target.capability if target else 0) or TARGETS["h100"].capability
    machinery = _MACHINERY.replace("@MAJOR@", str(capability // 10)).replace("@MINOR@", str(capability % 10))
    sections = [_header(plans, original_path), _PRELUDE.rstrip()]
    written, operators = set[str](), list[str]()
    for plan, wrapped in zip(plans, wrappers, strict=True):
        sections.append(evidence(plan, kernels, (speeds or {}).get(plan.name)))
        for step in plan.steps:
            if isinstance(step, KernelStep) and step.kernel.name not in written:
                written.add(step.kernel.name)
                kernel = kernels[step.kernel.name]
                sections += [kernel.jit.strip(), kernel.launcher.strip()]
                operators.append(operator_text(kernel, operator_name(kernel, original_path)))
        sections.append(wrapped.text)
    sections += [machinery.rstrip(), *operators, _cases(plans)]
    if record is not None:
        sections.append(record_text(record).rstrip())
    sections.append(_CHECK.rstrip())
    text = _joined(sections)
    ast.parse(text)  # a kernel's text that is no Python must not reach a user's disk
    return text


def _joined(sections: Sequence[str]) -> str:
    """Sections two blank lines apart; a comment, or the docstring, one blank line above what follows it."""
    text = sections[0]
    for number, section in enumerate(sections[1:]):
        near = number == 0 or text.rsplit("\n", 1)[-1].startswith("#")
        text += ("\n\n" if near else "\n\n\n") + section
    return text + "\n"


def _header(plans: Sequence[RegionPlan], path: Path) -> str:
    regions = ", ".join(dict.fromkeys(plan.region.function for plan in plans))
    return (
        f'"""GPU kernels for {regions} in {path.name}, written by mugraph {mugraph.__version__}.\n\n'
        f"{path.name} calls them where `<name>_fits` says yes and runs its own code everywhere else.\n"
        f"`mugraph revert {path.name}` takes them out again; running this file on a GPU compares them with PyTorch.\n"
        '"""'
    )


def _used_kernels(plans: Sequence[RegionPlan], kernels: Mapping[str, KernelSource]) -> list[KernelSource]:
    used: dict[str, tuple[KernelStep, KernelSource]] = {}
    for plan in plans:
        if not plan.name.isidentifier() or plan.name.startswith("__"):
            raise Rejected(f"{plan.name!r} cannot be a function's name")
        for step in plan.steps:
            if not isinstance(step, KernelStep):
                continue
            name = step.kernel.name
            if name not in kernels:
                raise Rejected(f"there is no source for kernel {name}")
            if name in used and used[name][0].kernel != step.kernel:
                raise Rejected(f"two different kernels are called {name}")
            used.setdefault(name, (step, kernels[name]))
    return [kernel for _, kernel in used.values()]


def _global_names(plans: Sequence[RegionPlan], kernels: Sequence[KernelSource]) -> frozenset[str]:
    """Names the plans and kernels bind in the module. Raises Rejected when one would mean two things.

    Helpers that several kernels bring along in the same words are one thing.
    """
    bound: list[tuple[str, str]] = []
    for plan in plans:
        bound += [(name, plan.name) for name in entry_names(plan)]
    for kernel in kernels:
        for text in (kernel.jit, kernel.launcher):
            bound += [(name, ast.dump(node)) for node in ast.parse(text).body for name in _binds(node)]
        bound += [(f"{prefix}_{kernel.name}", kernel.name) for prefix in ("_run", "_op", "_fake", "")]
    meanings: dict[str, str] = dict.fromkeys(MODULE_NAMES, "")
    for name, meaning in bound:
        if meanings.setdefault(name, meaning) != meaning:
            raise Rejected(f"the kernel module would use the name {name} for two things")
    if len({plan.name for plan in plans}) < len(plans):
        raise Rejected("two regions have the same name")
    return frozenset(meanings)


def _binds(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _apart(kernels: Mapping[str, KernelSource], plans: Sequence[RegionPlan]) -> dict[str, KernelSource]:
    """The kernels, with another name for a @triton.jit function that a region's would hide ("lora": "lora_kernel")."""
    public = {name for plan in plans for name in (plan.name, f"{plan.name}_fits")}
    apart = dict(kernels)
    for key, kernel in kernels.items():
        for name in [name for node in ast.parse(kernel.jit).body for name in _binds(node) if name in public]:
            jit = re.sub(rf"\b{re.escape(name)}\(", f"{name}_kernel(", apart[key].jit)
            launcher = re.sub(rf"\b{re.escape(name)}\[", f"{name}_kernel[", apart[key].launcher)
            apart[key] = replace(apart[key], jit=jit, launcher=launcher)
    return apart


def _cases(plans: Sequence[RegionPlan]) -> str:
    """The table `_check` walks: per region its functions and its inputs' shapes, strides and types."""
    lines = ["_CASES = ("]
    for plan in plans:
        lines.append("    (")
        lines += [f'        "{plan.name}",', f"        {tensors_fit(plan)},", f"        {on_tensors(plan)},"]
        lines += [f"        _{plan.name}_reference,", "        ("]
        for live_in in plan.region.live_ins:
            info = plan.region.values[live_in.value]
            shape, strides, dtype = tuple_text(info.shape), tuple_text(info.strides), torch_type(info.dtype)
            lines.append(f"            ({shape}, {strides}, {dtype}),")
        lines += ["        ),", "    ),"]
    return "\n".join([*lines, ")"])


__all__ = ["MODULE_NAMES", "Speed", "Wrapper", "module_text"]
