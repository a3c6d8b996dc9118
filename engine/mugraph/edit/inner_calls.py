"""Calls of a model's parts whose code is in other files than the model's own, as one run of it makes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from mugraph.edit.in_memory import Origin, pictured
from mugraph.trace.picture import Picture


@dataclass
class InnerCall:
    """Of the calls of one class's objects with tensors of the same shapes, the first. times: how many there were"""

    module: torch.nn.Module
    origin: Origin
    args: Sequence[object]
    keywords: Mapping[str, object]
    times: int = 1


@dataclass
class _Watch:
    """stack: files of the calls that have begun and not ended"""

    origins: Mapping[type, Origin]
    stack: list[Path | None] = field(default_factory=list["Path | None"])
    calls: dict[tuple[object, ...], InnerCall] = field(default_factory=dict[tuple[object, ...], InnerCall])

    def before(self, module: torch.nn.Module, args: tuple[object, ...], keywords: dict[str, object]) -> None:
        origin = self.origins.get(type(module))
        path = origin.path if origin is not None else None
        if origin is not None and path not in self.stack:
            key = (type(module), *map(_kind, (*args, *keywords.values())))
            if key in self.calls:
                self.calls[key].times += 1
            else:
                self.calls[key] = InnerCall(module, origin, args, keywords)
        self.stack.append(path)

    def after(self, *_: object) -> None:
        self.stack.pop()


def by_file(
    model: torch.nn.Module, own: Path, args: Sequence[object], keywords: Mapping[str, object]
) -> list[tuple[Origin, dict[str, tuple[str, Picture]]]]:
    """For each other file that code of the model's parts is in, in the order in which they are reached: qualified names
    of functions -> the full name of the class, as a region says what ran in it, and a picture of a call."""
    found: dict[Path, tuple[Origin, dict[str, tuple[str, Picture]]]] = {}
    for call in inner_calls(model, own, args, keywords):
        kind = type(call.module)
        _, pictures = found.setdefault(call.origin.path, (call.origin, {}))
        for name, picture in pictured(call.origin, call.args, call.keywords).items():
            pictures.setdefault(name, (f"{kind.__module__}.{kind.__qualname__}", picture))
    return list(found.values())


def inner_calls(
    model: torch.nn.Module, own: Path, args: Sequence[object], keywords: Mapping[str, object]
) -> list[InnerCall]:
    """Of each class of another file than `own`, the call that is made most often, where that file's code is entered; in
    the order in which they are made. The model is run once, on copies of the inputs: it may write to them. Of a model
    that trains, nothing is said: its run would change it."""
    origins = _elsewhere(model, own)
    if not origins or any(module.training for module in model.modules()):
        return []
    watch, handles = _Watch(origins), list[Any]()
    try:
        for module in model.modules():
            handles.append(module.register_forward_pre_hook(watch.before, with_kwargs=True))
            handles.append(module.register_forward_hook(watch.after, always_call=True))
        model(*copy.deepcopy(tuple(args)), **copy.deepcopy(dict(keywords)))
    finally:
        for handle in handles:
            handle.remove()
    most: dict[type, InnerCall] = {}
    for call in watch.calls.values():
        known = most.setdefault(type(call.module), call)
        if call.times > known.times:
            most[type(call.module)] = call
    return list(most.values())


def _elsewhere(model: torch.nn.Module, own: Path) -> dict[type, Origin]:
    """Classes of its parts that have parameters, and code in another file that is not PyTorch's."""
    found: dict[type, Origin] = {}
    for module in model.modules():
        kind = type(module)
        if kind in found or kind.__module__.partition(".")[0] == "torch" or next(module.parameters(), None) is None:
            continue
        try:
            origin = Origin.of(module)
        except TypeError:
            continue
        if origin.path != own:
            found[kind] = origin
    return found


def _kind(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return value if isinstance(value, bool | int | str | None) else type(value)
