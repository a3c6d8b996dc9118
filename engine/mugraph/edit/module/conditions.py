"""The part of the shared runtime with conditions on settings and values, which are asked at every call."""

from __future__ import annotations

import inspect

from mugraph.ir.spelled import spelled
from mugraph.trace.pytorch.tf32 import OPERATIONS

CONDITIONS = '''\
# Settings and values
def _on_default_device(device: torch.device) -> bool:
    """Whether tensors that are made without saying where would be on this device."""
    default = torch.get_default_device()
    return default.type == device.type and default.index in (None, device.index)


def _default_type(name: str) -> bool:
    return str(torch.get_default_dtype()) == name


_fp32_precision = getattr(torch._C, "_get_fp32_precision_getter", None)
_OPERATIONS = __OPERATIONS__
_NO_TF32 = os.environ.get("NVIDIA_TF32_OVERRIDE") == "0"


@_constant
def _takes_tf32(setting: str) -> bool:
    """Whether PyTorch lets what cuDNN or cuBLAS multiplies take TF32, as a kernel does. What is set by `fp32_precision`
    may not be read by `allow_tf32`."""
    if _NO_TF32:
        return False
    if _fp32_precision is not None:
        return _fp32_precision("cuda", _OPERATIONS[setting]) == "tf32"
    return torch.backends.cudnn.allow_tf32 if setting == "cudnn" else torch.backends.cuda.matmul.allow_tf32


def _equals(value: object, constant: object) -> bool:
    """Whether it is the same constant: 1, 1.0 and True are not, nor is a tensor that holds it."""
    if type(value) is not type(constant) and not isinstance(value, torch.SymInt):
        return False
    if type(value) is tuple or type(value) is list:
        if len(value) != len(constant):
            return False
        for one, other in zip(value, constant):
            if not _equals(one, other):
                return False
        return True
    if type(value) is dict:
        return list(value) == list(constant) and all(_equals(value[key], constant[key]) for key in constant)
    return value == constant


@_constant
def _is_the(thing: object, name: str) -> bool:
    """Whether something is what a library has under a name."""
    return thing is _named(name)


__SPELLED__
'''.replace("__OPERATIONS__", repr(OPERATIONS)).replace(
    "__SPELLED__", inspect.getsource(spelled).replace("spelled(", "_spelled(")
)
