"""Programs without a reduction or a product: each has one topology, which is the program itself.

Nothing of it is computed twice or kept between iterations, so there is nothing to search for: its time is that of its
traffic, however its operators are arranged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from mugraph.ir.program import TensorProgram
from mugraph.search.kernel_graphs.parts import as_block
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import Found, Stats


def is_direct(program: TensorProgram) -> bool:
    return not any(op.kind.reduces for op in program.ops)


class DirectSearch:
    """As mugraph.search.run.Search, of a program with any outputs. Raises NotSearchable."""

    def __init__(self, program: TensorProgram) -> None:
        check(program)
        self.program = program
        self._count = 0
        self._began = time.monotonic()

    @property
    def stats(self) -> Stats:
        found, size = self._count, len(self.program.compute_ops)
        return Stats(
            found, size, bool(found), size, "space" if found else "running", {}, time.monotonic() - self._began
        )

    def run(self) -> Iterator[Found]:
        self._count = 1
        yield Found(as_block(self.program), time.monotonic() - self._began)
