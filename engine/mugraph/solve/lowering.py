"""Whether a search unit's program is what its recorded calls compute: looked at once for all units that are the same,
and kept for other runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from mugraph.events import UnitResult
from mugraph.ir.content import digest
from mugraph.ir.region import SearchUnit
from mugraph.log import note
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.store.keys import code_digest, versions
from mugraph.verification.float_test import LATE
from mugraph.verification.lowering.check import check_lowering, mark_of
from mugraph.verification.verdict import Lowering

_log = logging.getLogger("mugraph.solve")


class Mislowered(Exception):
    """A tensor program is not what the recorded calls compute; the message says of which unit, and how it is seen."""


def lowering_of(
    unit: SearchUnit, smaller: Sequence[SearchUnit], place: Place, tools: Tools, store: Store | None = None
) -> Lowering:
    """smaller: of a size in a range, the unit at others than the largest. store: of other runs"""
    mark = mark_of(unit, smaller)
    known = tools.lowerings.get(mark) or _recalled(store, mark)
    if known is None:
        known = check_lowering(unit, smaller, tools.tester)
        _note(unit, place, known)
    kept(mark, known, tools, store)
    return known


def kept(mark: str, found: Lowering, tools: Tools, store: Store | None) -> None:
    """What could not be told is looked at again in another run; what there was no time for, by whoever asks next."""
    if found.passed is None and found.note == LATE:
        return
    tools.lowerings[mark] = found
    if store is not None and found.passed:
        store.put(_key(mark), {"passed": True, "note": found.note})


def with_lowering(result: UnitResult, found: Lowering) -> UnitResult:
    """The result, with what was found in its verdict; without its kernel where the program is wrong."""
    if result.solution is None:
        return result
    if found.passed is False:
        return replace(result, solution=None, reason=found.words, lowering=found)
    verdict = replace(result.solution.verdict, lowering=found)
    return replace(result, solution=replace(result.solution, verdict=verdict), lowering=found)


def _recalled(store: Store | None, mark: str) -> Lowering | None:
    document: Mapping[str, object] | None = store.get(_key(mark)) if store is not None else None
    if document is None:
        return None
    try:
        found = msgspec.convert(document, Lowering)
    except msgspec.ValidationError:
        return None
    return found if found.passed else None


def _key(mark: str) -> str:
    return digest("lowering", mark, {**versions(), "code": code_digest()})


def _note(unit: SearchUnit, place: Place, found: Lowering) -> None:
    if found.passed is None:
        _log.info("%s of %s: %s", place.name, place.function, found.words)
    elif not found.passed:
        calls = "\n".join(f"{call.target}{call.args} {dict(call.kwargs)} -> {call.outputs}" for call in unit.calls)
        note(Mislowered(f"{found.words}\n{calls}"), f"{place.name}, for {place.function}, is not offered")
