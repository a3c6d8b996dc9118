"""What recorded runs say of a file, as everything that traces and searches it takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mugraph.ir.shares import Share
from mugraph.recording.memory import Seen, pictured, recorded_shapes, seen, shares
from mugraph.recording.ways import Way, other_ways
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes


@dataclass(frozen=True)
class Runs:
    """By function of the file.

    shapes, pictures: arguments and objects of the way that took longest
    calls: all that were seen
    shares: of the run
    ways: the others in which functions were called
    """

    shapes: RecordedShapes = field(default_factory=dict[str, Mapping[str, str]])
    pictures: Mapping[str, Picture] = field(default_factory=dict[str, Picture])
    calls: Mapping[str, Sequence[Seen]] = field(default_factory=dict[str, Sequence[Seen]])
    shares: Mapping[str, Share] = field(default_factory=dict[str, Share])
    ways: Sequence[Way] = ()

    @staticmethod
    def of(path: Path, text: str) -> Runs:
        """text: of the file as it is to be traced."""
        return Runs(
            recorded_shapes(path, text),
            pictured(path, text),
            seen(path, text),
            shares(path, text),
            tuple(other_ways(path, text)),
        )
