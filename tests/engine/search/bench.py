"""`python -m tests.engine.search.bench [NAMES]`: how long the search takes on the papers' programs."""

from __future__ import annotations

import sys
import time

from mugraph.search.run import Search
from mugraph.search.topologies.limits import Limits

from tests.engine.search.workloads import WORKLOADS


def main(names: list[str]) -> int:
    """Print one line per program. Returns the exit status: 2 for a name that is not known."""
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        print(f"no program named {', '.join(unknown)}; known: {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    print(f"{'program':<26}{'ops':>4}{'first s':>9}{'loop s':>8}{'total s':>9}{'values':>8}{'found':>7}  ended by")
    for name in names or WORKLOADS:
        program = WORKLOADS[name]()
        search = Search(program, Limits())
        first: float | None = None
        looped: float | None = None
        for found in search.run():
            first = found.seconds if first is None else first
            if looped is None and found.block.loops:
                looped = found.seconds
        stats = search.stats
        times = "".join(f"{'-' if t is None else f'{t:.2f}':>{w}}" for t, w in ((first, 9), (looped, 8)))
        ending = f"{stats.ended_by}{'' if stats.complete else ' (not complete)'}"
        print(
            f"{name:<26}{len(program.compute_ops):>4}{times}{stats.seconds:>9.2f}{stats.values:>8}"
            f"{stats.topologies:>7}  {ending}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    began = time.monotonic()
    status = main(sys.argv[1:])
    print(f"{time.monotonic() - began:.1f} s in all")
    raise SystemExit(status)
