"""The file of a function or a module of a session; and a call's picture, with the session's things in that file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import torch

from mugraph.edit.cells.file import defined_again, written
from mugraph.recording.inside.mugraph_recorder.pictures import picture

_SESSION = "__main__"


def file_of_session(function: FunctionType, module: object | None, inputs: Sequence[object]) -> Path:
    """module: whose `forward` the function is; None for a function of its own. inputs: that it is called with. Raises
    TypeError, one sentence."""
    space = function.__globals__
    for part in module.modules() if isinstance(module, torch.nn.Module) else [] if module is None else [module]:
        kind = cast("type[object]", type(part))
        if kind.__module__ == _SESSION and defined_again(kind, space):
            raise TypeError(f"{kind.__qualname__} was defined again after this object was made; make the object anew")
    given = {str(number): value for number, value in enumerate(inputs)}
    seen = picture(module, given, function.__code__, space)
    names = [name for one in _places(seen) if (name := str(one["name"]).partition(".")[0])]
    roots = [function if module is None else type(module), *(space[name] for name in dict.fromkeys(names))]
    of = function if module is None else type(module)
    return written(of.__qualname__.partition(".")[0], roots, space)


def in_file(seen: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A picture whose classes and functions of the session are found in that file."""

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            made = {key: placed(one) for key, one in cast("dict[str, Any]", value).items()}
            return {**made, "file": str(path)} if _is_place(made) else made
        if isinstance(value, list):
            return [placed(one) for one in cast("list[Any]", value)]
        return value

    return {**cast("dict[str, Any]", placed(dict(seen))), "of_session": True}


def _is_place(value: Mapping[str, Any]) -> bool:
    return value.get("is") in ("place", "function") and value.get("module") == _SESSION


def _places(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if _is_place(found) and found["is"] == "place":
            yield found
        for one in found.values():
            yield from _places(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _places(one)
