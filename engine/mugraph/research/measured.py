"""Candidates with their measured times, as data with their device: what the cost model is fitted to."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mugraph.ir.block import Candidate
from mugraph.ir.json import block_from_json, block_to_json, schedule_from_json, schedule_to_json


class Row(msgspec.Struct, array_like=True):
    """A candidate. kernels: number of the topology and schedule of each, in the order they run; us: measured, None
    where it was not, and why."""

    kernels: list[tuple[int, object]]
    us: float | None = None
    why: str = ""


class Program(msgspec.Struct):
    """One search unit. program: as ir.json writes it; topologies: blocks, likewise."""

    name: str
    program: object
    topologies: list[object]
    rows: list[Row]


class Measured(msgspec.Struct):
    """target: the device model with the device's figures."""

    target: str
    programs: list[Program]
    device: str = ""
    date: str = ""
    method: str = ""
    versions: Mapping[str, str] = {}


def read(path: Path) -> Measured:
    """Raises OSError, msgspec.DecodeError."""
    data = path.read_bytes()
    return msgspec.json.decode(gzip.decompress(data) if path.suffix == ".gz" else data, type=Measured)


def write(measured: Measured, path: Path) -> None:
    """To a file beside it first; compressed where its name ends in .gz, so that equal data are equal files."""
    data = msgspec.json.encode(measured) + b"\n"
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    new.replace(path)


def rows_of(candidates: Sequence[Candidate]) -> tuple[list[object], list[Row]]:
    """Topologies, each once, and the rows of the candidates."""
    topologies: dict[bytes, int] = {}
    rows: list[Row] = []
    for candidate in candidates:
        kernels: list[tuple[int, object]] = []
        for kernel in candidate.kernels:
            text = msgspec.json.encode(block_to_json(kernel.block))
            kernels.append((topologies.setdefault(text, len(topologies)), schedule_to_json(kernel.schedule)))
        rows.append(Row(kernels))
    return [msgspec.json.decode(text) for text in topologies], rows


def candidates_of(program: Program) -> Iterator[tuple[Row, Candidate]]:
    """Raises ir.json.FormatError."""
    blocks = [block_from_json(document) for document in program.topologies]
    for row in program.rows:
        found: Candidate | None = None
        for number, schedule in reversed(row.kernels):
            found = Candidate(blocks[number], schedule_from_json(schedule), then=found)
        if found is not None:
            yield row, found
