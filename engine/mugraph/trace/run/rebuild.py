"""Objects of a picture, made without their constructors: the class is found, the attributes are given to it.

What was not kept is there as a `NotThere`, which says so where it is used.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CellType, FunctionType, MethodType, SimpleNamespace
from typing import Any, cast

import numpy
import torch

from mugraph.trace import picture as p
from mugraph.trace.run.pictured_tensors import PicturedTensors
from mugraph.trace.run.places import NotFound, Places

_SEQUENCES: dict[str, type[Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque, "size": torch.Size,
}  # fmt: skip
_GROWING = ("list", "set", "deque")
_MAPPINGS: dict[str, type[Any]] = {"dict": dict, "OrderedDict": OrderedDict, "defaultdict": defaultdict}


class NotKept(Exception):
    """The program needs something that its recording does not have. One sentence."""


class NotThere:
    """In place of what was not kept."""

    def __init__(self, what: str) -> None:
        object.__setattr__(self, "_what", what)

    def _refuse(self, *_: object, **__: object) -> Any:
        raise NotKept(f"needs what mugraph record could not keep: {object.__getattribute__(self, '_what')}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __call__ = __bool__ = __len__ = __iter__ = __next__ = __getitem__ = __contains__ = __index__ = __float__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __truediv__ = __lt__ = __gt__ = __enter__ = _refuse


class StandIn:
    """An object whose class cannot be had here: its attributes, without its methods."""


class Rebuilder:
    """Makes the values of one picture, each node once. device: for tensors; None: the CPU."""

    def __init__(self, picture: p.Picture, places: Places, device: str | None = None) -> None:
        self._nodes = picture.nodes
        self._places = places
        self._tensors = PicturedTensors(picture.nodes, device)
        self._made: dict[int, object] = {}
        self._begun: set[int] = set()

    def value(self, value: p.Value) -> Any:
        match value:
            case p.Reference(at):
                return self._node(at)
            case p.Unkept(what):
                return NotThere(what)
            case p.Number(text):
                return float(text)
            case p.BigInteger(text):
                return int(text)
            case p.Complex((real, imaginary)):
                return complex(self.value(real), self.value(imaginary))
            case p.Named():
                return _named(value)
            case p.Place():
                return self._found(value)
            case p.Member(of, name):
                found = self._found(of)
                return getattr(found, name, NotThere(f"{of.name}.{name}"))
            case _:
                return value

    def _node(self, at: int) -> object:
        if at in self._made:
            return self._made[at]
        if at in self._begun or not 0 <= at < len(self._nodes):
            return NotThere("a tuple that contains itself")
        self._begun.add(at)

        def known(made: object) -> None:
            self._made[at] = made

        made = self._make(self._nodes[at], known)
        self._made[at] = made
        return made

    def _make(self, node: p.Node, known: Callable[[object], None]) -> object:
        """known: to be told of an object before its attributes are made, which may refer to it."""
        match node:
            case p.Tensor():
                return self._tensor(node)
            case p.Array():
                return _array(node, [self.value(one) for one in node.items])
            case p.Object():
                return self._object(node, known)
            case p.Items():
                return self._items(node, known)
            case p.Pairs():
                return self._pairs(node, known)
            case p.Slice((start, stop, step)):
                return slice(self.value(start), self.value(stop), self.value(step))
            case p.Span((start, stop, step)):
                return range(self.value(start), self.value(stop), self.value(step))
            case p.PathText(text):
                return Path(text)
            case p.Partial(function, args, kwargs):
                named = {name: self.value(one) for name, one in kwargs.items()}
                return partial(self.value(function), *map(self.value, args), **named)
            case p.Method(function, owner):
                return MethodType(self.value(function), self.value(owner))
            case p.Weak(to):
                return _weak(self.value(to))
            case p.Function():
                return self._function(node, known)
            case p.Unkept(what):
                return NotThere(what)

    def _tensor(self, node: p.Tensor) -> object:
        try:
            made = self._tensors.tensor(node)
        except RuntimeError as error:
            return NotThere(str(error))
        self._give(made, node.state)
        return made

    def _object(self, node: p.Object, known: Callable[[object], None]) -> object:
        try:
            kind = self._places.find(node.of)
            if not isinstance(kind, type):
                raise NotFound(f"{node.of.name} is no class now")
            base = SimpleNamespace if kind is SimpleNamespace else object
            made: Any = base.__new__(cast(Any, kind))
        except (NotFound, TypeError) as error:
            if "training" in node.state and "_modules" in node.state:  # its methods are what it is for
                return NotThere(f"a {node.of.name}; {error}")
            made = type(node.of.name.rpartition(".")[2], (StandIn,), {})()
        if isinstance(made, torch.nn.Module):
            torch.nn.Module.__init__(made)
        known(made)
        self._give(made, node.state)
        for name, one in node.slots.items():
            object.__setattr__(made, name, self.value(one))
        return cast(object, made)

    def _give(self, made: Any, state: dict[str, p.Value]) -> None:
        """Attributes, without the object's own way of setting them."""
        for name, one in state.items():
            made.__dict__[name] = self.value(one)

    def _items(self, node: p.Items, known: Callable[[object], None]) -> object:
        base: Any = _SEQUENCES.get(node.kind, list)
        kind = self._kind(node.of, base)
        if node.kind not in _GROWING:
            items = [self.value(one) for one in node.items]
            made: Any = base(items) if kind is base else base.__new__(kind, items)
        else:
            made = base.__new__(kind)
            known(made)
            grow = base.add if node.kind == "set" else base.append
            for one in node.items:
                grow(made, self.value(one))
        self._give(made, node.state)
        return made

    def _pairs(self, node: p.Pairs, known: Callable[[object], None]) -> object:
        base: Any = _MAPPINGS.get(node.kind, dict)
        kind = self._kind(node.of, base)
        if issubclass(kind, OrderedDict | defaultdict):  # `dict` cannot make these
            base = cast(Any, OrderedDict if issubclass(kind, OrderedDict) else defaultdict)
        made: Any = base.__new__(kind)
        if node.kind == "defaultdict":
            made.default_factory = self.value(node.factory)
        known(made)
        for key, one in node.items:
            base.__setitem__(made, self.value(key), self.value(one))
        self._give(made, node.state)
        return made

    def _kind(self, of: p.Place | None, base: Any) -> Any:
        """The class that inherits from `base`, or `base` where it cannot be had."""
        found = self._found(of) if of is not None else base
        return found if isinstance(found, type) and issubclass(found, base) else base

    def _function(self, node: p.Function, known: Callable[[object], None]) -> object:
        try:
            code, namespace = self._places.code_of(node)
        except NotFound as error:
            return NotThere(f"the function {node.name}; {error}")
        if len(code.co_freevars) != len(node.closure):
            return NotThere(f"the function {node.name}, which is another one now")
        cells = tuple(CellType() for _ in node.closure)
        made = FunctionType(code, namespace, None, tuple(map(self.value, node.defaults)), cells)
        known(made)
        for cell, one in zip(cells, node.closure, strict=True):
            cell.cell_contents = self.value(one)
        made.__kwdefaults__ = {name: self.value(one) for name, one in node.named_defaults.items()}
        return made

    def _found(self, place: p.Place) -> Any:
        try:
            return self._places.find(place)
        except NotFound as error:
            return NotThere(f"{place.module}.{place.name}; {error}")


def _weak(made: object) -> object:
    """A reference that holds nothing. To nothing is one to what is gone. What cannot be referred to so is not there."""
    try:
        return weakref.ref(_Gone() if made is None else made)
    except TypeError:
        return NotThere(f"a weak reference to a {type(made).__name__}")


class _Gone:
    pass


def _named(value: p.Named) -> object:
    if value.what == "ellipsis":
        return ...
    if value.what == "device":
        return torch.device(value.text)
    found = getattr(torch, value.text, None)
    return found if found is not None else NotThere(f"torch.{value.text}")


def _array(node: p.Array, items: list[Any]) -> object:
    made = numpy.array(items, dtype=node.dtype).reshape(node.shape)
    return made[()] if node.alone else made
