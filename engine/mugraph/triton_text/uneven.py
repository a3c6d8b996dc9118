"""Blocks that go through a loop differently often, surveyed side by side: as those of a causal mask, each of which has
keys to read up to its own rows.

In a survey a loop only reads, as a rule, and what it leaves behind are floating-point numbers, of which nothing is
known but their shape. So all blocks follow the one that goes round most often, and what is read counts for those that
are still in the loop alone. Whatever else happens there, or seems wrong, has the blocks surveyed apart, as does a name
that is read after the loop and is not the same for all: what is said of a wrong text is then what it is of any other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.language import Loop, Unsettled, Value
from mugraph.triton_text.refusals import Diverges, Refused
from mugraph.triton_text.running import Launch
from mugraph.triton_text.tiles import Floats


class Surveying(Protocol):
    """A run of blocks. inside: which of them are in an uneven loop that it is in. apart: in how many rounds each went
    through the last such loop"""

    launch: Launch
    inside: NDArray[np.intp] | None
    apart: NDArray[np.int64] | None


class UnevenLoop(Loop):
    """counts: [blocks], not all the same. value: of the loop's variable, by iteration"""

    def __init__(self, run: Surveying, counts: NDArray[np.int64], value: Callable[[int], Value]) -> None:
        self._run, self._counts, self._value = run, counts, value

    def go_round(self, once: Callable[[Value], None], here: dict[str, Value], body: Sequence[ast.stmt]) -> None:
        if not all(map(_is_straight, body)):
            raise self.apart()
        run, read, least = self._run, self._run.launch.read, int(self._counts.min())
        left, unsettled = dict(here), set[str]()
        run.apart = self._counts
        try:
            for at in range(int(self._counts.max())):
                run.inside = np.flatnonzero(self._counts > at)
                once(self._value(at))
                if at + 1 > least:  # some blocks have left it with what there was before
                    unsettled |= {name for name, value in here.items() if not _is_as(value, left, name)}
                left = dict(here)
        except (Refused, Diverges) as error:
            run.launch.read = read
            raise self.apart() from error
        finally:
            run.inside = None
        here |= dict.fromkeys(unsettled, Unsettled(self.apart))

    def apart(self) -> Diverges:
        return Diverges(self._counts)


def _is_straight(statement: ast.stmt) -> bool:
    """Is it an assignment to names, or a call? It is not where blocks could go on in another place than the next."""
    match statement:
        case ast.Assign(targets):
            return all(map(_are_names, targets))
        case ast.AnnAssign(target) | ast.AugAssign(target):
            return _are_names(target)
        case ast.Expr() | ast.Pass():
            return True
        case _:
            return False


def _are_names(target: ast.expr) -> bool:
    parts: Iterable[ast.expr] = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(part, ast.Name) for part in parts)


def _is_as(value: Value, left: Mapping[str, Value], name: str) -> bool:
    """Is it what the name stood for, or a floating-point number of which as much is known?"""
    if name not in left or value is left[name]:
        return name in left
    return isinstance(value, Floats) and value.real is None and value == left[name]
