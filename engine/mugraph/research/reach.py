"""How much of a folder of programs is reached: `python -m mugraph.research.reach DIR...` (what `make reach` runs).

Every file is traced, and every region in it is run on real tensors by its recorded calls and compared with what the
original computed. The exit status is 1 if a file cannot be traced, or if a region differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mugraph.ir.region import Trace
from mugraph.trace.tracer import trace_file


def _files(folders: list[str]) -> list[Path]:
    """Python files in the folders themselves, each once."""
    found: dict[Path, None] = {}
    for folder in folders:
        path = Path(folder)
        for file in [path] if path.is_file() else sorted(path.glob("*.py")):
            found.setdefault(file)
    return list(found)


def _line(file: Path, trace: Trace) -> str:
    regions = [region for region in trace.regions if region.status is None]
    operators = sum(len(region.calls) for region in regions)
    ends = f"; ended by {', '.join(trace.barriers)}" if trace.barriers else ""
    return f"{file}: {len(regions)} regions, {operators} of {trace.operators} operators{ends}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mugraph.research.reach", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a folder of Python files, or a file")
    parser.add_argument("--jobs", type=int, default=2, help="files traced at once (default: 2)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a file may take (default: 120)")
    options = parser.parse_args(arguments)
    files = _files(options.paths)
    if not files:
        print(f"no Python files in {', '.join(options.paths)}", file=sys.stderr)
        return 1

    def one(file: Path) -> Trace:
        return trace_file(file, timeout_s=options.timeout, check=True)

    barriers: Counter[str] = Counter()
    faults: list[str] = []
    regions = inside = operators = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for file, trace in zip(files, pool.map(one, files), strict=True):
            print(_line(file, trace), flush=True)
            barriers.update(trace.barriers)
            operators += trace.operators
            found = [region for region in trace.regions if region.status is None]
            regions += len(found)
            inside += sum(len(region.calls) for region in found)
            faults.extend(f"{file}: {error}" for error in trace.errors)
            failed = (region for region in trace.regions if region.status == "failed")
            faults.extend(f"{file}: {region.function}: {region.reason}" for region in failed)
    print(f"\n{len(files)} files, {regions} regions, {inside} of {operators} operators in them")
    for name, count in barriers.most_common():
        print(f"{count:6} × {name}")
    for fault in faults:
        print(fault, file=sys.stderr)
    agreed = f"{len(faults)} faults" if faults else f"all {regions} regions equal the original on real tensors"
    print(agreed)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
