"""The pool: right graphs of programs.py as JSON, as `mugraph optimize --json` prints them (search_pool.py fills it)."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("programs.py")
REWRITTEN = Path(__file__).with_name("rewritten.py")
POOL = Path(__file__).with_name("pool")
REWRITTEN_POOL = Path(__file__).with_name("pool_rewritten.json")

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Entry:
    """A function of programs.py.

    program: its tensor program. steps: of its range, the sizes it is judged at, the largest last; (1,) without a range
    results: its output tensors in the order the function returns them
    graphs:  right ones
    """

    name: str
    program: Json
    steps: tuple[int, ...]
    results: tuple[str, ...]
    graphs: tuple[Json, ...]


_DEFAULTS: Json = {
    "inputs": [], "axes": [], "over": [], "tensor": "", "value": 0.0, "fn": "", "f32": False, "rows": [], "columns": [],
}  # fmt: skip
"""Of the fields of an operator: those that the pool's files leave out."""


def brief(value: Any) -> Any:
    """JSON of the engine without what it need not say: fields of operators that have their defaults."""
    if isinstance(value, list):
        return [brief(part) for part in value]
    if isinstance(value, dict):
        is_op = value.keys() >= _DEFAULTS.keys()
        return {key: brief(part) for key, part in value.items() if not (is_op and _DEFAULTS.get(key) == part)}
    return value


def full(value: Any, of_op: bool = False) -> Any:
    """The same with these fields again."""
    if isinstance(value, list):
        return [full(part, of_op) for part in value]
    if isinstance(value, dict):
        made = {key: full(part, key == "ops") for key, part in value.items()}
        return {**copy.deepcopy(_DEFAULTS), **made} if of_op else made
    return value


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in POOL.glob("*.json")))


@cache
def entry(name: str) -> Entry:
    document = json.loads((POOL / f"{name}.json").read_text(encoding="utf-8"))
    graphs = tuple(full(graph) for graph in document["graphs"])
    return Entry(name, full(document["program"]), tuple(document["steps"]), tuple(document["results"]), graphs)


@cache
def rewritten() -> dict[str, Json]:
    """ "program__how" -> the graph of a function of rewritten.py."""
    return full(json.loads(REWRITTEN_POOL.read_text(encoding="utf-8")))
