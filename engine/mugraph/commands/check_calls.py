"""`mugraph check --trace`: are the programs that kernels were made for still what the recorded calls compute?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mugraph.checking.again import Checked
from mugraph.edit.source.record import Record
from mugraph.solve.traced_again import TracedAgain
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verdict import Lowering

Lowerings = Sequence[tuple[str, Lowering]]
"""Of one region: of each kernel, by its name."""


def calls_again(checked: Sequence[Checked], records: Mapping[Path, Record]) -> list[Lowerings]:
    """Of each region. records: by module. Runs the code of their files, in other processes."""
    found: list[Lowerings] = []
    traces: dict[Path, TracedAgain] = {}
    with FloatTester() as tester:
        if checked:
            tester.begin()  # it imports PyTorch while the first file is traced
        for one in checked:
            if one.module not in traces:
                traces[one.module] = TracedAgain.of(one.file, records[one.module])
            trace = traces[one.module]
            found.append(
                [(each.graph.name, trace.lowering(one.function, each.program, tester)) for each in one.kernels]
            )
    return found


def with_calls(checked: Checked, found: Lowerings) -> Checked:
    """What does not hold is a problem; what could not be looked at is none."""
    wrong = [f"of {kernel}, {one.words}" for kernel, one in found if one.passed is False]
    return replace(checked, problems=(*checked.problems, *wrong))
