"""Builds the user's objects to be traced: modules with their weights, and tensors without contents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from mugraph.ir.dtypes import STORED
from mugraph.trace.picture import Around, Picture
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.conversions import conversions_in_place
from mugraph.trace.run.entries import Entry
from mugraph.trace.run.groups import set_up
from mugraph.trace.run.pictured_call import as_passed, by_position, method_of, pictured_call, wants_gradients
from mugraph.trace.run.places import Places
from mugraph.trace.run.rebuild import Rebuilder
from mugraph.trace.run.values import DTYPE_NAMES
from mugraph.trace.syntax.shapes import Expression, Spec, TensorSpec

_log = logging.getLogger("mugraph.trace")


class CannotBuild(Exception):
    """One sentence: why an entry has no callable. needs_init: constructor arguments are missing."""

    def __init__(self, message: str, needs_init: bool = False) -> None:
        super().__init__(message)
        self.needs_init = needs_init


@dataclass(frozen=True)
class Ready:
    """A callable with its arguments. around: what is to be set while it runs. without_gradients: it was called where
    none are recorded, or with nothing that wants any: contexts that turn their recording off change nothing"""

    function: Callable[..., object]
    args: Sequence[object]
    kwargs: Mapping[str, object]
    around: Around | None = None
    without_gradients: bool = False


@dataclass
class Builder:
    """places: the user's module, and others. mode: FakeTensorMode, or None for real tensors with real numbers.
    constants: is told what is an argument. device: for recorded tensors; None: the CPU."""

    places: Places
    mode: FakeTensorMode | None
    constants: Constants
    device: str | None = None

    @property
    def namespace(self) -> dict[str, object]:
        return self.places.namespace

    @contextmanager
    def within(self) -> Generator[None]:
        """Where the user's code runs on the kind of tensors that the builder makes."""
        if self.mode is None:
            yield
            return
        with self.mode, conversions_in_place():
            yield

    def ready(self, entry: Entry) -> Ready:
        """Builds what an entry needs. Raises CannotBuild, or whatever the user's code raises."""
        if entry.kind == "kernelbench":
            return self._kernelbench()
        if entry.picture is not None:
            return self._pictured(entry, entry.picture)
        given = {name: self.value(spec) for name, spec in entry.arguments.items()}
        self.constants.forget(given)
        args = [given.pop(name) for name in entry.positional]
        kwargs = given
        if entry.kind == "function":
            return Ready(cast(Callable[..., object], self.lookup(entry.function)), args, kwargs)
        owner = self.lookup(entry.owner or "")
        if not isinstance(owner, type):
            raise CannotBuild(f"{entry.owner} is no class when the file has run")
        init = {name: self.value(spec) for name, spec in (entry.init or {}).items()}
        self.constants.forget(init)
        try:
            built = self.build(owner, (), init)
        except TypeError as error:
            if "__init__()" not in str(error):
                raise
            hint = f"add “# mugraph: init(...)” above {entry.owner}"
            raise CannotBuild(f"cannot build {entry.owner}: {error}; {hint}", needs_init=True) from error
        if isinstance(built, torch.nn.Module):
            dtype = _float_dtype(entry.arguments.values())
            if dtype is not None:
                cast_module(built, dtype)
        function = built if entry.method == "__call__" else getattr(built, entry.method)
        return Ready(cast(Callable[..., object], function), args, kwargs)

    def _pictured(self, entry: Entry, picture: Picture) -> Ready:
        """The object, and unless a comment gives others the arguments, as they were recorded."""
        set_up(picture.around.distributed)
        with self.within():
            call = pictured_call(entry, picture, Rebuilder(picture, self.places, self.device), self.namespace)
        given = {**call.arguments, **{name: self.value(spec) for name, spec in entry.arguments.items()}}
        self.constants.forget(given)
        function: object = None
        if call.owner is None:
            function = self.lookup(entry.function)
        elif entry.arguments and not entry.was_recorded and isinstance(call.owner, torch.nn.Module):
            dtype = _float_dtype(entry.arguments.values())
            if dtype is not None:
                cast_module(call.owner, dtype)
        if call.owner is not None:
            function = method_of(call.owner, entry.function, self.lookup(entry.function))
        args, kwargs = as_passed(given, by_position(function, entry.positional))
        without = picture.around.inference or not wants_gradients(picture)
        return Ready(cast(Callable[..., object], function), args, kwargs, picture.around, without)

    def _kernelbench(self) -> Ready:
        model = self.lookup("Model")
        get_inputs = cast(Callable[[], Sequence[object]], self.lookup("get_inputs"))
        if not isinstance(model, type):
            raise CannotBuild("Model is no class when the file has run")
        get_init = cast("Callable[[], Sequence[object]] | None", self.namespace.get("get_init_inputs"))
        with self.within():
            args: Sequence[object] = get_init() if get_init is not None else ()
        kwargs: Mapping[str, object] = {}
        if len(args) == 2 and type(args[0]) is list and type(args[1]) is dict:
            # Some files give [[positional...], {keywords}]
            args, kwargs = cast("tuple[Sequence[object], Mapping[str, object]]", tuple(args))
        built = self.build(model, args, kwargs)
        with self.within():
            inputs = list(get_inputs())
        self.constants.forget((args, kwargs, inputs))
        return Ready(cast(Callable[..., object], built), inputs, {})

    def build(self, owner: type, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        try:
            with self.within():
                built: object = owner(*args, **kwargs)
        except DataDependentOutputException as error:
            _log.info("%s is built with real tensors: %s", owner.__name__, error)
            # Its constructor reads numbers (a schedule of drop rates, say): build it for real, then forget the numbers
            built = owner(*args, **kwargs)
            if isinstance(built, torch.nn.Module) and self.mode is not None:
                forget_numbers(built, self.mode, self.constants)
        if isinstance(built, torch.nn.Module):
            built.eval().requires_grad_(False)
        return built

    def lookup(self, qualname: str) -> object:
        names = qualname.split(".")
        if names[0] not in self.namespace:
            raise CannotBuild(f"{qualname} does not exist when the file has run")
        value = self.namespace[names[0]]
        for name in names[1:]:
            value = getattr(value, name)
        return value

    def value(self, spec: Spec) -> object:
        if isinstance(spec, TensorSpec):
            with self.within():
                return self._tensor(spec)
        if isinstance(spec, Expression):
            with self.within():
                return eval(spec.text, {**DTYPE_NAMES, **self.namespace})  # the user's own comment in the user's file
        return tuple(self.value(item) for item in spec)

    def _tensor(self, spec: TensorSpec) -> torch.Tensor:
        dtype = DTYPE_NAMES[spec.dtype]
        if spec.strides is not None:
            whole = self._tensor(TensorSpec(spec.dtype, (reach(spec),)))
            return torch.as_strided(whole, spec.shape, spec.strides)
        if dtype.is_floating_point:
            return torch.randn(spec.shape).to(dtype)
        if dtype is torch.bool:
            return torch.rand(spec.shape) > 0.5
        return torch.zeros(spec.shape, dtype=dtype)


def reach(spec: TensorSpec) -> int:
    """Elements of memory from a tensor's first one to its last one."""
    steps = ((size - 1) * stride for size, stride in zip(spec.shape, spec.strides or (), strict=True))
    return 1 + sum(steps) if all(spec.shape) else 0


def _float_dtype(specs: object) -> torch.dtype | None:
    """The one floating-point dtype among the arguments, if there is exactly one."""
    found: set[str] = set()

    def visit(spec: Spec) -> None:
        if isinstance(spec, TensorSpec) and DTYPE_NAMES[spec.dtype].is_floating_point and spec.dtype not in STORED:
            found.add(spec.dtype)
        elif isinstance(spec, tuple):
            for item in spec:
                visit(item)

    for spec in cast("Sequence[Spec]", specs):
        visit(spec)
    return DTYPE_NAMES[found.pop()] if len(found) == 1 else None


def _replace_tensors(module: torch.nn.Module, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replaces parameters and buffers; shared ones stay shared. (`Module.to` refuses to on fake parameters.)"""
    done: dict[int, torch.Tensor] = {}
    kept: list[torch.Tensor] = []
    for inner in module.modules():
        held = cast("Mapping[str, dict[str, torch.Tensor | None]]", inner.__dict__)
        for tensors, is_parameter in ((held["_parameters"], True), (held["_buffers"], False)):
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if id(tensor) not in done:
                    kept.append(tensor)
                    changed = change(tensor)
                    done[id(tensor)] = torch.nn.Parameter(changed, requires_grad=False) if is_parameter else changed
                tensors[name] = done[id(tensor)]


def cast_module(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """Does what `module.to(dtype)` does: gives floating-point parameters and buffers another dtype. One that is
    narrower than PyTorch's default stays: the constructor has chosen it."""
    usual = torch.get_default_dtype().itemsize

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        chosen = not tensor.is_floating_point() or tensor.dtype.itemsize < usual
        return tensor if chosen else tensor.detach().to(dtype)

    _replace_tensors(module, changed)


def forget_numbers(module: torch.nn.Module, mode: FakeTensorMode, constants: Constants) -> None:
    """Fake tensors in place of real ones; what constants hold is remembered."""
    _replace_tensors(module, lambda tensor: constants.same(mode.from_tensor(tensor.detach()), tensor))
