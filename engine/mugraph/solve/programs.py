"""The user's file as its regions were traced, so that what is written for them is timed with what they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.recording.runs import Runs
from mugraph.recording.ways import Way
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes


@dataclass(frozen=True)
class ProgramText:
    """recorded, pictures: shapes and calls that were seen, as tracing takes them"""

    text: str
    recorded: RecordedShapes | None = None
    pictures: Mapping[str, Picture] | None = None


@dataclass(frozen=True)
class Programs:
    """usual: None where the text is not known. others: by region, of another way in which its function is called"""

    usual: ProgramText | None = None
    others: Mapping[int, ProgramText] = field(default_factory=dict[int, ProgramText])

    @staticmethod
    def of(text: str, runs: Runs, ways: Mapping[int, Way]) -> Programs:
        """ways: by region, as traced"""
        others = {number: ProgramText(text, way.recorded_shapes, way.pictures) for number, way in ways.items()}
        return Programs(ProgramText(text, runs.shapes or None, runs.pictures or None), others)

    def at(self, region: int) -> ProgramText | None:
        return self.others.get(region, self.usual)
