"""Which calls in user code are harmless: they have no effect and depend on nothing but their arguments."""

from __future__ import annotations

import builtins
import functools
import inspect
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import cast

import torch

from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.containers import WRITES
from mugraph.trace.pytorch.targets import last_part, target_of
from mugraph.trace.pytorch.words import words

_log = logging.getLogger("mugraph.trace")

_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in words(
        """abs all any bool callable complex dict divmod enumerate filter float frozenset getattr hasattr id int
        isinstance issubclass iter len list map max min next pow range repr reversed round set slice sorted str sum
        tuple type zip super property"""
    )
)
_TORCH = words(
    """torch.Size torch.device torch.finfo torch.iinfo torch.is_tensor torch.no_grad
    torch.autograd.grad_mode.no_grad torch.autograd.grad_mode.inference_mode torch.autograd.grad_mode.enable_grad
    torch.autograd.grad_mode.set_grad_enabled torch.is_storage torch.promote_types
    torch.functional.broadcast_shapes
    torch.amp.autocast_mode.autocast torch.cuda.amp.autocast_mode.autocast torch.cpu.amp.autocast_mode.autocast
    torch.jit.is_scripting torch._jit_internal.is_scripting torch._C.Size
    torch._jit_internal.is_tracing torch.jit._trace.is_tracing torch.compiler.is_compiling torch.is_autocast_enabled
    torch._C._get_tracing_state torch._C._log_api_usage_once torch._C.finfo torch._C.iinfo torch._C.device"""
)
_MODES = words("torch.is_grad_enabled torch.is_inference_mode_enabled")
"""What they answer is another thing in training, where the tensors may be the same."""
DEFAULT_TYPE = "torch.get_default_dtype"
_READS = words(
    """get items keys values copy index count startswith endswith format join lower upper split strip replace numel
    bit_length is_integer as_integer_ratio __getitem__ __len__ __contains__ named_parameters parameters named_modules
    modules children named_children buffers named_buffers get_parameter get_submodule indices"""
)
_CONTAINERS = (str, bytes, tuple, list, dict, int, float, bool, set, frozenset, range, slice, OrderedDict)
_MODULE_READS = (torch.nn.Module, torch.Size)
_NOTATIONS = frozenset({"einops", "einx"})
"""Packages whose functions make calls of PyTorch by their text and by shapes alone."""
_OWN = frozenset({"torch", "opt_einsum", "mugraph", "jaxtyping"}) | _NOTATIONS
_CONTRACT = "opt_einsum.contract.contract"
"""Which calls of PyTorch it makes is decided by its text and by shapes alone. (An expression of that library is an
object, and may keep results.)"""
HOOKS = "__mugraph__"
"""The name by which instrumented code calls hooks."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    problem: str | None
    mutates: int | None = None


def name_of(function: object) -> str:
    name = attribute_of(function, "__qualname__") or type(function).__qualname__
    module = attribute_of(function, "__module__")
    return f"{module}.{name}" if module and module != "builtins" else str(name)


@dataclass
class Judge:
    """Decides whether calls are harmless. A call of code that is watched is no effect by itself.

    files: of the user's own; libraries: files of other packages, some functions of which are watched
    """

    files: set[str] = field(default_factory=set[str])
    libraries: set[str] = field(default_factory=set[str])

    def watches(self, code: CodeType | None) -> bool:
        """Whether what the code does is recorded: of a library's file, only functions that have hooks do so."""
        if code is None:
            return False
        return code.co_filename in self.files or (code.co_filename in self.libraries and HOOKS in code.co_names)

    def call(self, function: Callable[..., object], recorded: Sequence[str]) -> Verdict | None:
        """What is wrong with a call; None if nothing is. recorded: targets of the PyTorch calls it led to."""
        while isinstance(function, functools.partial):
            function = cast("functools.partial[object]", function).func
        name = name_of(function)
        if isinstance(function, torch.nn.Module):
            return None  # judged when it is called: library code calls modules too
        code = _code(function)
        if code is not None and self.watches(code):
            if code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
                return Verdict(name, "calls a generator or coroutine")
            return None
        if self.module_of(function) is not None and recorded:
            return None
        owner = attribute_of(function, "__self__")
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            return Verdict(f"{owner.__qualname__}.apply", "calls an autograd.Function of its own")
        if name in _MODES:
            return Verdict(name, "asks whether gradients are recorded")
        if name == DEFAULT_TYPE:
            return Verdict(name, None)
        if name in _TORCH or (_hashable(function) and function in _BUILTINS):
            return None
        if attribute_of(function, "__module__") in ("math", "operator", "_operator", "einops", "typing"):
            return Verdict(name, None)
        if isinstance(owner, _CONTAINERS) and not isinstance(owner, type):
            method = attribute_of(function, "__name__")
            if method in _READS:
                return None
            if method in WRITES:
                return Verdict(name, None, id(cast(object, owner)))
        if isinstance(owner, _MODULE_READS) and attribute_of(function, "__name__") in _READS:
            return None
        root = str(attribute_of(function, "__module__") or "").partition(".")[0]
        if root in _NOTATIONS or name == _CONTRACT:
            return None
        if root == "torch" or isinstance(owner, torch.Tensor) or _is_torch_builtin(function):
            names = str(attribute_of(function, "__name__") or ""), last_part(target_of(function))
            own = {name.rstrip("_") for name in names}
            module = str(attribute_of(function, "__module__") or "")
            dispatched = module in ("torch.nn.functional", "torch._jit_internal", "torch.utils._contextlib")
            if recorded and (dispatched or any(last_part(target).rstrip("_") in own for target in recorded)):
                return None
        return Verdict(name, "has effects that the tracer does not know")

    def module_of(self, function: Callable[..., object]) -> torch.nn.Module | None:
        """The module of which the function is a method that PyTorch defines for modules of its kind, as the `forward`
        that `super().forward(x)` calls. What it does is what it does where the module is called. None for others, and
        for what every module has, most of which changes it."""
        module, name = attribute_of(function, "__self__"), str(attribute_of(function, "__name__") or "")
        if not isinstance(module, torch.nn.Module) or (name != "forward" and hasattr(torch.nn.Module, name)):
            return None
        if name != "forward" and type(module).__module__.startswith("torch."):
            return None
        return module if str(attribute_of(function, "__module__") or "").startswith("torch.nn.modules.") else None

    def may_be_watched(self, module: ModuleType) -> bool:
        """Whether it is the user's, or has functions that are watched once they are called."""
        return getattr(module, "__file__", None) in self.files or is_of_another_library(module.__name__)

    def module_problem(self, module: torch.nn.Module) -> str | None:
        if any(getattr(module, hooks, None) for hooks in _HOOKS):
            return "a module with hooks"
        forward = inspect.unwrap(type(module).forward)
        if str(getattr(forward, "__module__", "")).partition(".")[0] == "torch":
            return None  # PyTorch's own, inherited or not: what else of the class it calls is watched, or foreign
        return None if self.watches(_code(forward)) else "a module of another library"

    def foreign(self, frame: FrameType) -> str | None:
        """The third-party package whose code this frame runs, if it is one."""
        name = frame.f_globals.get("__name__")
        if self.watches(frame.f_code) or not is_of_another_library(name):
            return None
        return str(name).partition(".")[0]


def is_of_another_library(module: object) -> bool:
    """By the name of a module: neither of PyTorch, of Python or of what this project knows, nor a script."""
    root = str(module or "").partition(".")[0]
    return bool(root) and root not in _OWN and root not in sys.stdlib_module_names


def _code(function: object) -> CodeType | None:
    if isinstance(function, MethodType):
        function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else None


def _hashable(value: object) -> bool:
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return True
    try:
        hash(value)
    except Exception as error:  # a weak reference to what is gone has a hash, and raises
        _log.debug("a %s that was called cannot be hashed: %s", type(value).__name__, error)
        return False
    return True


def _is_torch_builtin(function: object) -> bool:
    owner = attribute_of(function, "__objclass__") or attribute_of(function, "__self__")
    return "torch" in (getattr(owner, "__module__", None) or getattr(owner, "__name__", None) or "")
