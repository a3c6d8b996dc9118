"""Calls a drawn file and the same with its kernels, in Triton's interpreter, and prints what differs as JSON.

A process of its own, because TRITON_INTERPRET must be set before Triton is imported. Arguments: a folder with the file
in `original` and in `edited`, the file's stem.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from mugraph.verification.interpreter import patch_interpreter

from tests.changes.described import Described, Raised, differences
from tests.trust.whole_programs.calls import Entry, calls, entries, seen

CLOSE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""Distances that other orders of addition, and roundings left out, may make, for a largest number of 1."""
SLACK = 20.0
"""Times what a rounding of the inputs makes, that those within may make."""
OTHER_SHAPES = ("narrow", "a dimension more", "a dimension less", "other rows", "one tensor twice", "expanded")


def main() -> None:
    folder, stem = Path(sys.argv[1]), sys.argv[2]
    patch_interpreter()
    _once()
    found: dict[str, Any] = {"wrong": [], "launches": {}, "raises": {}, "calls": 0, "lenient": 0}
    for entry in entries(folder / "original" / f"{stem}.py"):
        found["launches"][entry.name] = 0
        first, other = _Side(folder / "original", stem), _Side(folder / "edited", stem)
        names = [call.name for call in calls(entry, first.module)]
        before = [first.seen(entry, name) for name in names]
        results = [one["result"] for name, one in zip(names, before, strict=True) if name == "declared"]
        found["raises"][entry.name] = [one.kind for one in results if isinstance(one, Raised)]
        for native in (False, True):
            after = other.all(entry, names, native=native)
            for name, expected, got in zip(names, before, after, strict=True):
                found["calls"] += 1
                if name in ("declared", "third call"):
                    found["launches"][entry.name] += got["launches"]
                if _lenient(name, got, expected):
                    found["lenient"] += 1
                    continue
                rounded = partial(first.seen, entry, name)
                said = [*_compared(got, expected, rounded)]
                found["wrong"] += [f"{entry.name}, {name}{' (C)' if native else ''}: {one}" for one in said]
    print(json.dumps(found))


_RAN = [0]


def _once() -> None:
    from triton.runtime.interpreter import GridExecutor

    launch = GridExecutor.__call__

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        _RAN[0] += 1
        return launch(self, *arguments, **options)

    GridExecutor.__call__ = counted


class _Side:
    """The file of one folder, imported by its own name."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem
        self.module = self._imported()

    def all(self, entry: Entry, names: list[str], *, native: bool) -> list[dict[str, Any]]:
        self.module = self._imported()
        kernels = sys.modules.get(f"{self._stem}_mugraph")
        if kernels is not None:
            vars(kernels)["_tested_gpu"] = lambda kind, index: kind == "cpu"
            assert not native or kernels._make_native()
        return [self.seen(entry, name) for name in names]

    def seen(self, entry: Entry, name: str, noise: int = 0) -> dict[str, Any]:
        call = next(one for one in calls(entry, self.module, noise) if one.name == name)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            said = seen(self.module, entry, call, lambda: _RAN[0])
        return said | {"printed": printed.getvalue()}

    def _imported(self) -> ModuleType:
        for name in [one for one in sys.modules if one.startswith((self._stem, "mugraph_runtime"))]:
            del sys.modules[name]
        sys.path.insert(0, str(self._folder))
        try:
            return importlib.import_module(self._stem)
        finally:
            sys.path.remove(str(self._folder))


def _lenient(name: str, got: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Of inputs that it was not written for, on which the original raises: whether kernels went without code whose
    result nobody reads, and which is what raises; or another line raises first."""
    if not isinstance(expected["result"], Raised) or name not in OTHER_SHAPES:
        return False
    return isinstance(got["result"], Raised) or got["launches"] > 0


def _compared(got: dict[str, Any], expected: dict[str, Any], rounded: Callable[[int], dict[str, Any]]) -> Iterator[str]:
    """rounded: the original's, of inputs that are a rounding away. Where kernels ran, also in a call before the one
    that is looked at, its state is theirs."""
    ran = got["launches in all"]
    for name in expected:
        if not name.startswith("launches"):
            yield from differences(got[name], expected[name], name, bits=not ran)
    if not ran or all(error <= close for _, error, close in _errors(got, expected, "")):
        return
    moved: dict[str, float] = {}
    for seed in range(1, 6):
        for path, error, _ in _errors(rounded(seed), expected, ""):
            moved[path] = max(moved.get(path, 0.0), error)
    for path, error, close in _errors(got, expected, ""):
        if error > max(close, SLACK * moved.get(path, 0.0)):
            made = moved.get(path, 0.0)
            yield f"{path}: off by {error:.2g}, where {close:.2g} is close and inputs' roundings make {made:.2g}"


def _errors(got: Any, expected: Any, path: str) -> Iterator[tuple[str, float, float]]:
    """Of each tensor: its path, how far it is from what is expected, and how far it may be in any case."""
    if isinstance(got, Described) and isinstance(expected, Described):
        mine, other = got.values, expected.values
        if mine is None or other is None or mine.shape != other.shape or mine.dtype != other.dtype or not mine.numel():
            return
        if not other.is_floating_point():
            yield path, 0.0 if torch.equal(mine, other) else math.inf, 0.0
            return
        close = CLOSE[other.dtype]
        mine, other = mine.double(), other.double()
        if not torch.equal(mine.isnan(), other.isnan()) or not torch.equal(mine.isinf(), other.isinf()):
            yield path, math.inf, 0.0
            return
        mine, other = (one.nan_to_num(0.0, 0.0, 0.0) for one in (mine, other))
        yield path, float((mine - other).abs().max()), close * max(float(other.abs().max()), 1e-2)
    elif isinstance(got, dict) and isinstance(expected, dict):
        for name in got.keys() & expected.keys():
            yield from _errors(got[name], expected[name], f"{path}.{name}")
    elif isinstance(got, list) and isinstance(expected, list):
        for number, (mine, other) in enumerate(zip(got, expected, strict=False)):
            yield from _errors(mine, other, f"{path}[{number}]")


if __name__ == "__main__":
    main()
