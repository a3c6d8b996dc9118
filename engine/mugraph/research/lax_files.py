"""Which of the files of a run of `mugraph bench files` have Lax programs (Mirage §5), and how those fared:

    python -m mugraph.research.lax_files KERNELBENCH_FOLDER RESULTS.json...

A file has one where a search unit of it has a product or a sum and nothing outside the fragment; it is one where that
holds of all its units. The files are traced, not run on a device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mugraph.ir.lax import why_not_lax
from mugraph.trace.tracer import trace_file
from mugraph.units.joining import units
from mugraph.units.search_units import SearchUnit


class _Region(msgspec.Struct):
    status: str
    peers_us: dict[str, float] = {}
    optimized_us: float | None = None


class _File(msgspec.Struct):
    file: str
    regions: list[_Region]


class _Results(msgspec.Struct):
    files: list[_File]


@dataclass(frozen=True)
class Fared:
    """lax, units: search units of the file, of them those that are Lax. code, compiled: how many times as fast as the
    code and as torch.compile the file's best region was measured to be; None where nothing was offered"""

    file: str
    lax: int
    units: int
    code: float | None
    compiled: float | None


def count(path: Path) -> tuple[int, int]:
    """Of a file's search units, those with a product or a sum that are Lax; all."""
    found = [
        part.program.ops
        for region in trace_file(path).regions
        if region.status is None
        for part in units(region)
        if isinstance(part, SearchUnit)
    ]
    lax = [ops for ops in found if why_not_lax(ops) is None and any(op.kind.reduces for op in ops)]
    return len(lax), len(found)


def fared(folder: Path, results: Sequence[Path]) -> Iterator[Fared]:
    for path in results:
        for file in msgspec.json.decode(path.read_bytes(), type=_Results).files:
            lax, every = count(folder / file.file)
            gains = [
                (one.peers_us["eager"] / one.optimized_us, one.peers_us.get("torch.compile", 0.0) / one.optimized_us)
                for one in file.regions
                if one.status == "improved" and one.optimized_us and "eager" in one.peers_us
            ]
            code, compiled = max(gains, default=(None, None))
            yield Fared(file.file, lax, every, code, compiled)


def summary(files: Sequence[Fared], what: str) -> str:
    """One line."""
    code = sum(1 for one in files if one.code is not None and one.code > 1.0)
    compiled = sum(1 for one in files if one.compiled is not None and one.compiled > 1.0)
    return f"{len(files)} {what}: {code} faster than the code as it runs, {compiled} faster than torch.compile"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2 or not Path(arguments[0]).is_dir():
        print("usage: python -m mugraph.research.lax_files FOLDER RESULTS.json...", file=sys.stderr)
        return 2
    found = list(fared(Path(arguments[0]), [Path(one) for one in arguments[1:]]))
    print(summary([one for one in found if one.lax], "files with a Lax program"))
    print(summary([one for one in found if one.lax == one.units > 0], "files that are Lax as a whole"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
