"""A recorded call made ready to be run: its object, its arguments, and its module's data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, cast

import torch

from mugraph.trace.picture import Picture, Tensor
from mugraph.trace.run.entries import Entry
from mugraph.trace.run.rebuild import Rebuilder

_PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class PicturedCall:
    """owner: None for a function of no class. arguments: those that the entry does not describe; empty where a comment
    gives others."""

    owner: object | None
    arguments: Mapping[str, object]


def pictured_call(entry: Entry, picture: Picture, rebuilder: Rebuilder, namespace: dict[str, object]) -> PicturedCall:
    """Sets the module's data that the program had set when the call was made, and an import does not set."""
    owner: object = rebuilder.value(picture.owner) if entry.owner is not None else None
    arguments: dict[str, object] = {}
    if not entry.arguments:
        arguments = {name: rebuilder.value(one) for name, one in picture.arguments.items()}
    elif entry.with_objects:  # what is gathered by `*rest` or `**more` is described by its own names
        others = {name: one for name, one in picture.arguments.items() if name not in entry.arguments}
        arguments = {name: rebuilder.value(one) for name, one in others.items() if not name.startswith("*")}
    for name, one in picture.globals.items():
        if namespace.get(name) is None or one is None or isinstance(one, _PLAIN):
            namespace[name] = rebuilder.value(one)
    if isinstance(owner, torch.nn.Module) and wants_gradients(picture):
        for module in owner.modules():  # not by train(), which a class may have made its own
            module.__dict__["training"] = False
    return PicturedCall(owner, arguments)


def wants_gradients(picture: Picture) -> bool:
    """Whether the call records gradients of anything. It then keeps its PyTorch code whatever is found: what is looked
    at is how the object would be used."""
    return picture.around.grad and any(isinstance(node, Tensor) and node.needs_grad for node in picture.nodes)


def method_of(owner: object, function: str, defined: object) -> object:
    """What was called. defined: the function of that name in the file; the object may be of a class that inherits it,
    and has another."""
    name = function.rpartition(".")[2]
    if getattr(type(owner), name, None) is not defined:
        return MethodType(cast(Any, defined), owner)
    return owner if name in ("forward", "__call__") and callable(owner) else getattr(owner, name)


def as_passed(given: Mapping[str, object], positional: Sequence[str]) -> tuple[Sequence[object], Mapping[str, object]]:
    """Those of `positional`, in its order, by position; then `*rest`; by name the others, and `**more`."""
    args: list[object] = [given[name] for name in positional if name in given]
    kwargs = {name: value for name, value in given.items() if name not in positional and not name.startswith("*")}
    for name, value in given.items():
        if name.startswith("**"):
            kwargs.update(cast("Mapping[str, object]", value))
        elif name.startswith("*"):
            args.extend(cast("Sequence[object]", value))
    return args, kwargs


def by_position(function: object, positional: Sequence[str]) -> Sequence[str]:
    """Those of `positional` that are passed so. Functions that decorators put around another one look for the arguments
    that have defaults by their names, as calls have them."""
    while isinstance(function, torch.nn.Module | MethodType):
        function = function.__func__ if isinstance(function, MethodType) else type(function).forward
    if not hasattr(function, "__wrapped__"):
        return positional
    known = inspect.signature(cast("Callable[..., object]", function)).parameters
    return [name for name in positional if name not in known or known[name].default is inspect.Parameter.empty]
