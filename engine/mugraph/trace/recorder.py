"""Runs instrumented code and fills the tape: one record per PyTorch call, its place in every user function exact."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import cast

import torch
from torch.overrides import TorchFunctionMode

from mugraph.trace.arguments import NotAnArgument, as_arguments
from mugraph.trace.autocast import noticed
from mugraph.trace.callables import Judge
from mugraph.trace.devices import ASKS_WHERE, HERE, device_argument, elsewhere, makes_tensors, problem_with
from mugraph.trace.recurrent import recurrent_by_shape
from mugraph.trace.region import Argument
from mugraph.trace.tape import Activation, Event, Happening, Loaded, Made, ModuleCalled, Record, Site, Step, Tape
from mugraph.trace.targets import functional_form, impurity, last_part, target_of
from mugraph.trace.values import Values, version
from mugraph.trace.words import words

Binary = Callable[[object, object], object]
_OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "MatMult": "matmul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitOr": "or_", "BitXor": "xor",
    "BitAnd": "and_", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge",
}  # fmt: skip
_BINARY: Mapping[str, Binary] = {node: getattr(operator, name) for node, name in _OPERATORS.items()}
_INPLACE: Mapping[str, Binary] = {
    node: getattr(operator, f"i{name.rstrip('_')}") for node, name in list(_OPERATORS.items())[:13]
}
_UNARY: Mapping[str, Callable[[object], object]] = {
    node: getattr(operator, name) for node, name in {"USub": "neg", "UAdd": "pos", "Invert": "invert"}.items()
}

# Calls on tensors that read no number of them: their results follow from shape, dtype, layout and device.
_METADATA = words(
    """
    shape dtype device ndim is_cuda is_cpu is_mps is_xpu is_meta layout requires_grad is_leaf grad grad_fn itemsize
    nbytes names is_sparse is_quantized is_nested size dim ndimension stride numel nelement is_contiguous
    is_floating_point is_complex is_signed element_size storage_offset get_device __len__ is_tensor is_same_size
    is_inference is_conj is_neg is_shared is_sparse_csr is_mkldnn is_vulkan is_ipu is_ort is_maia is_mtia __hash__
    result_type can_cast has_names dim_order numpy_dtype type_dtype _is_view retains_grad name __repr__
    """
)
MAX_EVENTS = 400_000
_OVERRIDDEN = "has_torch_function"  # what makes a library function hand itself over as a whole


def _frame(above: int) -> FrameType:
    """The caller's frame; above: that of so many callers higher up."""
    return sys._getframe(above + 1)  # pyright: ignore[reportPrivateUsage]


class TraceTooLong(BaseException):  # so that no `except Exception` of the user's takes it
    """The program made more calls than a trace can hold."""


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in cast(Sequence[object], value):
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in cast(Mapping[object, object], value).values():
            yield from tensors_in(item)


class Recorder(TorchFunctionMode):
    """Is the module-level name `__mugraph__` of instrumented code. Outside `recording` its hooks only pass through."""

    slice = slice  # what the index a:b becomes

    def __init__(self, judge: Judge, keep_copies: bool = False) -> None:
        super().__init__()
        self.judge = judge
        self.statements: dict[int, str] = {}  # what is wrong with a statement, by node
        self.tape = Tape()
        self.values = Values(keep_copies)
        self._stack: list[Activation] = []
        self._active = False
        self._devices: dict[int, torch.device] = {}  # that tensors of the program were asked for

    # -- life

    @contextmanager
    def recording(self) -> Generator[None]:
        original = torch.nn.Module.__call__

        def call(module: torch.nn.Module, /, *args: object, **kwargs: object) -> object:
            if self._active and self._stack:
                self.add(ModuleCalled(self.site(), module))
                problem = self.judge.module_problem(module)
                if problem is not None:
                    self.add(Happening(self.site(), type(module).__qualname__, problem))
            return original(module, *args, **kwargs)

        torch.nn.Module.__call__ = call
        self._active = True
        try:
            with self, noticed(self._autocast):
                yield
        finally:
            self._active = False
            torch.nn.Module.__call__ = original
            while self._stack:
                self._close(self._stack[-1], {})

    def _autocast(self) -> None:
        if self._active and self._stack:
            self.add(Happening(self.site(), "torch.autocast", "runs under autocast"))

    def site(self) -> Site:
        activation = self._stack[-1]
        return Site(activation.site, activation.index, len(activation.steps) - 1, tuple(activation.nodes))

    def add(self, event: Event) -> None:
        if len(self.tape.events) >= MAX_EVENTS:
            raise TraceTooLong("the program makes too many calls to be traced with these shapes")
        self.tape.events.append(event)
        self.values.now = len(self.tape.events)

    # -- hooks: functions and statements

    def enter(self, node: int) -> None:
        if not self._active:
            return
        frame = _frame(1)
        outer = self.site() if self._stack else None
        activation = Activation(len(self.tape.activations), node, outer, len(self.tape.events))
        activation.globals = frame.f_globals
        self.tape.activations.append(activation)
        self._stack.append(activation)

    def leave(self, node: int) -> None:
        if self._active and self._stack and self._stack[-1].node == node:
            self._close(self._stack[-1], dict(_frame(1).f_locals))

    def _close(self, activation: Activation, names: Mapping[str, object]) -> None:
        activation.names_at_end = names
        activation.end = len(self.tape.events)
        self._stack.pop()

    def step(self, node: int) -> None:
        if self._active and self._stack:
            activation = self._stack[-1]
            activation.nodes.clear()  # an exception may have cut calls short
            activation.steps.append(Step(node, len(self.tape.events), dict(_frame(1).f_locals)))
            problem = self.statements.get(node)
            if problem is not None:
                self.add(Happening(self.site(), "statement", problem))

    def returned(self, node: int, value: object) -> object:
        if self._active and self._stack:
            self._stack[-1].returned[len(self._stack[-1].steps) - 1] = value
        return value

    # -- hooks: expressions

    def _evaluate(self, node: int, compute: Callable[[], object]) -> object:
        activation = self._stack[-1]
        depth, step = len(activation.nodes), len(activation.steps) - 1
        activation.nodes.append(node)
        value = compute()
        del activation.nodes[depth:]
        if isinstance(value, torch.Tensor):
            activation.results[(step, node)] = self.values.number(value)
        return value

    def call(self, node: int, function: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        if not (self._active and self._stack):
            return function(*args, **kwargs)

        def compute() -> object:
            before = len(self.tape.events)
            site = self.site()
            result = function(*args, **kwargs)
            if function is getattr and len(args) >= 2 and not isinstance(args[0], torch.Tensor):
                self.add(Loaded(site, node, args[0], str(args[1]), result))
            after = self.tape.events[before : before + 64]
            verdict = self.judge.call(function, [event.target for event in after if isinstance(event, Record)])
            if verdict is not None:
                self.add(Happening(site, verdict.name, verdict.problem, verdict.mutates))
            self._about_devices(function, args, result)
            return result

        return self._evaluate(node, compute)

    def binary(self, node: int, name: str, left: object, right: object) -> object:
        if not (self._active and self._stack):
            return _BINARY[name](left, right)
        return self._evaluate(node, lambda: _BINARY[name](left, right))

    def compare(self, node: int, name: str, left: object, right: object) -> object:
        if self._active and self._stack and (isinstance(left, torch.device) or isinstance(right, torch.device)):
            own = id(left) in self._devices and id(right) in self._devices
            self.add(Happening(self.site(), "torch.device", None if own else "compares devices"))
        return self.binary(node, name, left, right)

    def _about_devices(self, function: Callable[..., object], args: tuple[object, ...], result: object) -> None:
        """Notes what would come out differently where the program runs in the end."""
        if isinstance(result, torch.device) and any(problem_with(arg) for arg in args if isinstance(arg, str)):
            self.add(Happening(self.site(), "torch.device", "names a device other than the GPU"))
        elif function in (str, repr, format, hash) and any(isinstance(arg, torch.device) for arg in args):
            self.add(Happening(self.site(), "torch.device", "asks which device a tensor is on"))

    def inplace(self, node: int, name: str, left: object, right: object) -> object:
        if not (self._active and self._stack):
            return _INPLACE[name](left, right)
        if type(left) in (list, dict, set):
            self.add(Happening(self.site(), "augmented assignment", None, id(left)))
        return self._evaluate(node, lambda: _INPLACE[name](left, right))

    def unary(self, node: int, name: str, operand: object) -> object:
        if not (self._active and self._stack):
            return _UNARY[name](operand)
        return self._evaluate(node, lambda: _UNARY[name](operand))

    def attribute(self, node: int, base: object, name: str) -> object:
        if not (self._active and self._stack) or isinstance(base, ModuleType):
            return getattr(base, name)
        value = self._evaluate(node, lambda: getattr(base, name))
        if isinstance(base, torch.device):
            self.add(Happening(self.site(), "torch.device", "asks which device a tensor is on"))
        elif isinstance(base, torch.Tensor) and isinstance(value, torch.device):
            self._devices[id(value)] = value
        if not isinstance(base, torch.Tensor):
            self.add(Loaded(self.site(), node, base, name, value))
        return value

    def subscript(self, node: int, base: object, index: object) -> object:
        typed = cast(Mapping[object, object], base)
        if not (self._active and self._stack):
            return typed[index]
        value = self._evaluate(node, lambda: typed[index])
        if not isinstance(base, torch.Tensor):
            self.add(Loaded(self.site(), node, base, f"[{index!r}]" if isinstance(index, int | str) else "[]", value))
        return value

    def made(self, node: int, value: object) -> object:
        if self._active and self._stack:
            self.add(Made(self.site(), node, value))
        return value

    # -- PyTorch calls

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if not (self._active and self._stack):
            return func(*args, **kwargs)
        target = target_of(func)
        if target == "torch.nn.functional.multi_head_attention_forward":
            return self._decomposed(func, args, kwargs)
        given = list(tensors_in((args, kwargs)))
        before = [version(tensor) for tensor in given]
        inputs = tuple(self.values.number(tensor) for tensor in given)
        known = {id(tensor) for tensor in given}
        out = recurrent_by_shape(target, args) or func(*args, **kwargs)
        produced = list(tensors_in(out))
        name = last_part(target)
        place = device_argument(name, args, kwargs)
        if not produced:
            if name in ASKS_WHERE:
                self.add(Happening(self.site(), target, "asks which device a tensor is on"))
            elif name not in _METADATA or target.endswith(".__set__"):
                problem = "writes a tensor" if name.startswith("__set") else "reads a tensor's numbers"
                self._note_writes(given, before)
                self.add(Happening(self.site(), target, problem))
            else:
                self.add(Record(self.site(), target, (), {}, (), (), (), None))
            return out
        problem = self._third_party() or _structure_problem(out) or problem_with(place)
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            problem = problem or "runs under autocast"
        writes = self._note_writes(given, before)
        if writes:
            # The functional form is what may be emitted again; whether renaming is allowed depends on the region
            pure = functional_form(target)
            args, kwargs, flagged = _without_inplace(args, kwargs)
            if len(writes) != 1 or len(produced) != 1 or produced[0] is not given[0] or (pure is None and not flagged):
                problem = problem or "writes in place"
            elif produced[0].dtype != torch.promote_types(*_dtypes(given)):
                problem = problem or "writes in place with another dtype"
            target = pure or target
        elif len(produced) == 1 and id(produced[0]) in known:
            if name not in ("contiguous",):
                # A conversion that had nothing to convert; guards on dtype and training keep it so
                problem = problem_with(place) or impurity(target, args, kwargs)
                self.add(Record(self.site(), target, (), {}, (), (), (), problem))
                return out
            self.values.fresh(produced[0])  # on other devices there may be something to copy
        if problem is None:
            problem = impurity(target, args, kwargs)
        outputs = tuple(self.values.number(tensor) for tensor in produced)
        if makes_tensors(target) and place is None:
            self.tape.homeless.update(outputs)
            kwargs = {**kwargs, "device": HERE}
        elif place is not None:
            args, kwargs = elsewhere(HERE, name, args, kwargs)
        # By number, since a later write gives the same object another one
        numbers = dict(zip([id(tensor) for tensor in given], inputs, strict=True))
        positional: tuple[Argument, ...] = ()
        named: Mapping[str, Argument] = {}
        try:
            positional, named = as_arguments(target, args, kwargs, numbers)
        except NotAnArgument as error:
            problem = problem or f"has {error}"
        self.add(Record(self.site(), target, positional, named, inputs, outputs, writes, problem))
        return out

    def _decomposed(
        self, func: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        """Runs a library function of PyTorch's as if it were the user's: its parts are recorded instead of it."""
        original = getattr(torch.nn.functional, _OVERRIDDEN)
        setattr(torch.nn.functional, _OVERRIDDEN, lambda _: False)  # pyright: ignore[reportUnknownLambdaType]
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            setattr(torch.nn.functional, _OVERRIDDEN, original)

    def _note_writes(self, given: Sequence[torch.Tensor], before: Sequence[int]) -> tuple[tuple[int, int], ...]:
        writes: list[tuple[int, int]] = []
        for tensor, old in zip(given, before, strict=True):
            if version(tensor) != old:
                number = self.values.number(tensor)
                self.values.written(tensor)
                writes.append((number, self.values.number(tensor)))
        return tuple(dict.fromkeys(writes))

    def _third_party(self) -> str | None:
        frame: FrameType | None = _frame(2)
        while frame is not None and frame.f_globals.get("__name__") != __name__:
            package = self.judge.foreign(frame)
            if package is not None:
                return f"made inside {package}"
            frame = frame.f_back
        return None


def _structure_problem(out: object) -> str | None:
    if isinstance(out, torch.Tensor):
        return None
    if isinstance(out, tuple | list):
        items = cast(Sequence[object], out)
        if len(items) > 1 and all(isinstance(item, torch.Tensor) for item in items):
            return None
    return "returns something other than tensors"


def _without_inplace(
    args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[tuple[object, ...], Mapping[str, object], bool]:
    """Drops `inplace=True`."""
    if kwargs.get("inplace") is True:
        return args, {key: value for key, value in kwargs.items() if key != "inplace"}, True
    return args, kwargs, False


def _dtypes(tensors: Sequence[torch.Tensor]) -> tuple[torch.dtype, torch.dtype]:
    result = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dim() > 0:
            result = torch.promote_types(result, tensor.dtype)
    return result, result
