"""Calls of a model's parts whose code is in other files than the model's own, as a run of it makes them."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from mugraph.edit.in_memory import Origin, pictured
from mugraph.trace.picture import Picture


@dataclass
class InnerCall:
    """Of the calls of one class's objects with tensors of the same shapes, the first. times, seconds: of all of them"""

    origin: Origin
    args: Sequence[object]
    keywords: Mapping[str, object]
    times: int = 0
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """The full name of the class, as a region says what ran in it."""
        return f"{type(self.origin.module).__module__}.{type(self.origin.module).__qualname__}"


@dataclass(frozen=True)
class FileCalls:
    """Of one file, a call of each class whose code is entered there. parts: of the model's time, by class"""

    origin: Origin
    calls: Sequence[InnerCall]
    parts: Mapping[str, float]

    def part(self, reached: Collection[str]) -> float:
        """Of the model's time, what is not in these classes."""
        return sum(part for kind, part in self.parts.items() if kind not in reached)

    def pictures(self, reached: Collection[str]) -> dict[str, Picture]:
        """By function, a call of the classes that are not among these."""
        found: dict[str, Picture] = {}
        for call in self.calls:
            if call.kind not in reached:
                for name, picture in pictured(call.origin, call.args, call.keywords).items():
                    found.setdefault(name, picture)
        return found


@dataclass(frozen=True)
class _Begun:
    """A call that has not ended. call: None where it is not kept"""

    path: Path | None
    call: InnerCall | None
    began_s: float


@dataclass
class _Watch:
    """stack: the outermost call first"""

    origins: Mapping[type, Origin]
    stack: list[_Begun] = field(default_factory=list[_Begun])
    calls: dict[tuple[object, ...], InnerCall] = field(default_factory=dict[tuple[object, ...], InnerCall])

    def before(self, module: torch.nn.Module, args: tuple[object, ...], keywords: dict[str, object]) -> None:
        origin, call = self.origins.get(type(module)), None
        if origin is not None and all(begun.path != origin.path for begun in self.stack):
            key = (type(module), *map(_kind, (*args, *keywords.values())))
            call = self.calls.setdefault(key, InnerCall(replace(origin, module=module), args, keywords))
        self.stack.append(_Begun(origin.path if origin is not None else None, call, _now()))

    def after(self, *_: object) -> None:
        begun = self.stack.pop()
        if begun.call is not None:
            begun.call.times += 1
            begun.call.seconds += _now() - begun.began_s


def by_file(
    model: torch.nn.Module, own: Path, args: Sequence[object], keywords: Mapping[str, object]
) -> list[FileCalls]:
    """For each other file that code of the model's parts is in, in the order in which they are reached."""
    calls, seconds = inner_calls(model, own, args, keywords)
    found: dict[Path, list[InnerCall]] = {}
    for call in calls:
        found.setdefault(call.origin.path, []).append(call)
    return [
        FileCalls(
            there[0].origin,
            [max((one for one in there if one.kind == kind), key=lambda one: one.times) for kind in _kinds(there)],
            {kind: sum(one.seconds for one in there if one.kind == kind) / seconds for kind in _kinds(there)},
        )
        for there in found.values()
    ]


def _kinds(calls: Sequence[InnerCall]) -> list[str]:
    return list(dict.fromkeys(call.kind for call in calls))


def inner_calls(
    model: torch.nn.Module, own: Path, args: Sequence[object], keywords: Mapping[str, object]
) -> tuple[list[InnerCall], float]:
    """Calls of classes of other files than `own`, where that file's code is entered, in the order in which they are
    made; and the seconds of the run. The model is run twice, on copies of the inputs, as it may write to them; the
    first time PyTorch prepares itself. Of a model that trains, nothing is said: its run would change it."""
    origins = _elsewhere(model, own)
    if not origins or any(module.training for module in model.modules()):
        return [], 0.0
    model(*copy.deepcopy(tuple(args)), **copy.deepcopy(dict(keywords)))
    watch, handles = _Watch(origins), list[Any]()
    given, named = copy.deepcopy(tuple(args)), copy.deepcopy(dict(keywords))
    try:
        for module in model.modules():
            handles.append(module.register_forward_pre_hook(watch.before, with_kwargs=True))
            handles.append(module.register_forward_hook(watch.after, always_call=True))
        began = _now()
        model(*given, **named)
        seconds = _now() - began
    finally:
        for handle in handles:
            handle.remove()
    return list(watch.calls.values()), seconds


def _now() -> float:
    """Seconds, when all that was begun is done."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def _elsewhere(model: torch.nn.Module, own: Path) -> dict[type, Origin]:
    """Classes of its parts that have code in another file, which is not PyTorch's. Attention has often no parameters
    of its own."""
    found: dict[type, Origin] = {}
    for module in model.modules():
        kind = type(module)
        if kind in found:
            continue
        try:
            origin = Origin.of(module)
        except TypeError:
            continue
        if origin.is_of_session and own.parent == origin.path.parent:
            continue  # its definition is in the model's own file
        if origin.path != own and str(origin.function.__module__).partition(".")[0] != "torch":
            found[kind] = origin
    return found


def _kind(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return value if isinstance(value, bool | int | str | None) else type(value)
