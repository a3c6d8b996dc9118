"""Measured times of PyTorch programs, as data with their device: what the rates of `mugraph.baseline` are fitted to."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mugraph import baseline
from mugraph.ir.region import Region
from mugraph.trace.tracer import trace_file

FOLDER = Path(baseline.__file__).with_name("measured")
OURS = "mugraph"


class Point(msgspec.Struct, frozen=True):
    """A program with shapes in a `# mugraph:` comment, and its times.

    function: whose region it is
    source:   who measured it, or where it is told of
    us:       microseconds on the device: "eager", "torch.compile", "max-autotune", and "mugraph", the generated code
    called_us: as it is called, wall time
    """

    name: str
    text: str
    us: Mapping[str, float]
    source: str = ""
    function: str = "program"
    called_us: Mapping[str, float] = {}


class Points(msgspec.Struct, frozen=True):
    """target: the device model with the device's figures."""

    device: str
    target: str
    date: str
    method: str
    points: list[Point]
    versions: Mapping[str, str] = {}


def read(path: Path) -> Points:
    """Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Points)


def write(points: Points, path: Path) -> None:
    """To a file beside it first."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(points), indent=1) + b"\n")
    new.replace(path)


def kept() -> list[Path]:
    """Files of the engine's own points."""
    return sorted(FOLDER.glob("*.json"))


def traced(points: Sequence[Point]) -> list[Region | None]:
    """The region of each; None where tracing finds none."""
    small = [number for number, point in enumerate(points) if point.function == "program"]
    with tempfile.TemporaryDirectory(prefix="mugraph-points-") as folder:
        path = Path(folder) / "programs.py"
        path.write_text(together([points[number] for number in small]))
        found = {region.function: region for region in trace_file(path, timeout_s=600).regions}
        regions = {number: found.get(f"program_{at}") for at, number in enumerate(small)}
        for number, point in enumerate(points):
            if number not in regions:
                path.write_text(point.text)
                mine = [r for r in trace_file(path).regions if r.function == point.function and r.status is None]
                regions[number] = mine[0] if mine else None
    return [regions[number] for number in range(len(points))]


def together(points: Sequence[Point]) -> str:
    """One file of several programs: tracing a file takes longer than tracing a program."""
    texts = [re.sub(r"\bdef program\(", f"def program_{at}(", point.text) for at, point in enumerate(points)]
    return "\n\n".join(texts)
