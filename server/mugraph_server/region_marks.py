"""A region at its place in the text now, with the progress of its search and the result of the search before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lsprotocol import types
from mugraph.protocol.values import Candidate, Region, RegionStatus
from mugraph.protocol.values import Range as EngineRange

from mugraph_server.documents.documents import Edit
from mugraph_server.documents.marks import moved, stretched

RESULTS: frozenset[RegionStatus] = frozenset({"improved", "no-gain"})


@dataclass(frozen=True)
class Pace:
    """How far a region's search is. number, of: which of the regions being searched, from 0. candidates: met so far."""

    what: str = ""
    number: int = 0
    of: int = 0
    topologies: int = 0
    seconds: float = 0.0
    first_hit_s: float | None = None
    candidates: tuple[Candidate, ...] = ()

    def met(self, candidate: Candidate) -> Pace:
        """The pace with this candidate added, or with it in place of an earlier state of it."""
        same = [(one.kernel, one.number) == (candidate.kernel, candidate.number) for one in self.candidates]
        if not any(same):
            return replace(self, candidates=(*self.candidates, candidate))
        kept = zip(self.candidates, same, strict=True)
        return replace(self, candidates=tuple(candidate if is_it else one for one, is_it in kept))


@dataclass(frozen=True)
class Mark:
    """A region where it stands now. region: as the engine last said; its own ranges are those of the text it was asked
    about, and only `range`, `head` and `statements` are to be shown. previous: the last result before this one."""

    region: Region
    range: types.Range
    head: types.Range
    statements: tuple[types.Range, ...]
    touched: bool = False
    previous: Region | None = None
    pace: Pace = field(default_factory=Pace)

    @property
    def key(self) -> str:
        return self.region.key

    @property
    def is_open(self) -> bool:
        """Whether it waits for its turn, or is being searched."""
        return self.region.status in ("queued", "searching")

    @property
    def result(self) -> Region | None:
        """The newest result, which may be that of the search before."""
        return self.region if self.region.status in RESULTS else self.previous

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates of the search that runs; if none does, of the one that gave the newest result."""
        if self.is_open or self.result is None:
            return self.pace.candidates
        return tuple(self.result.candidates)

    def edited(self, span: types.Range, text: str) -> Mark:
        place, head = moved(self.range, span, text), moved(self.head, span, text)
        statements = [moved(statement, span, text) for statement in self.statements]
        return replace(
            self,
            range=place or stretched(self.range, span, text),
            head=head or stretched(self.head, span, text),
            statements=tuple(statement for statement in statements if statement is not None),
            touched=self.touched or place is None,
        )


def to_range(given: EngineRange) -> types.Range:
    return types.Range(
        types.Position(given.start.line, given.start.character), types.Position(given.end.line, given.end.character)
    )


def placed(region: Region, since: Sequence[Edit], previous: Region | None, pace: Pace) -> Mark:
    """The region at its place after the edits since its text was asked about."""
    statements = tuple(to_range(statement) for statement in region.statements)
    mark = Mark(region, to_range(region.range), to_range(region.name_range), statements, previous=previous, pace=pace)
    for span, text in since:
        mark = mark.edited(span, text)
    return mark if region.status not in RESULTS else replace(mark, previous=None)


def ended(mark: Mark, status: RegionStatus, message: str) -> Mark:
    """The mark after its search has ended without a result: cancelled, it keeps the earlier result; failed, it says
    so."""
    if status != "failed" and mark.previous is not None:
        return replace(mark, region=mark.previous, previous=None, pace=Pace())
    sentence = message or "the search was cancelled before it came to an end"
    return replace(mark, region=_with_status(mark.region, status, sentence), pace=Pace())


def _with_status(region: Region, status: RegionStatus, message: str) -> Region:
    return Region(region.key, region.function, region.range, region.name_range, status, message, region.statements)
