"""What is known of a program at a size: times of the kernel for the range, of one for that size alone, and of the
code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

import msgspec

LEAST, GEOMETRIC = 0.95, 0.98
"""What a kernel for a range reaches of one for a size, at each size and in the geometric mean: the aim."""
LEVEL = 1.03
"""Times that differ by less are one time."""


class Row(msgspec.Struct):
    """Microseconds on the device of one call; None: it could not be had, and why. offered: whether the kernel for the
    range runs at this size; where not, the code does."""

    program: str
    size: str
    ranged_us: float | None
    alone_us: float | None
    code_us: float | None
    offered: bool = False
    why: str = ""
    right: dict[str, bool] = {}

    @property
    def runs_us(self) -> float | None:
        """Of what would run in the program."""
        return self.ranged_us if self.offered else self.code_us

    @property
    def is_complete(self) -> bool:
        """Nothing is to be looked at again."""
        return None not in (self.ranged_us, self.alone_us, self.code_us)

    @property
    def of_alone(self) -> float | None:
        """What the kernel for the range reaches of the one for the size: 1 where both take one time."""
        return None if not self.ranged_us or not self.alone_us else self.alone_us / self.ranged_us

    @property
    def is_slower(self) -> bool:
        """What runs is slower than the code, by more than measuring can tell."""
        return bool(self.runs_us and self.code_us and self.runs_us > LEVEL * self.code_us)


class Found(msgspec.Struct):
    """source: "measured" or "estimated". trials: kernels that were measured for a search unit, at most. left: what was
    not begun in time. code: a digest of this package."""

    source: str
    device: str
    date: str
    method: str
    versions: Mapping[str, str]
    trials: int
    rows: list[Row] = []
    left: list[str] = []
    code: str = ""


def geometric(numbers: Sequence[float]) -> float:
    return exp(sum(map(log, numbers)) / len(numbers)) if numbers else 0.0


def table(rows: Sequence[Row]) -> str:
    """As text."""
    head = ["program", "size", "for the range", "for the size", "code", "range/size", "runs", ""]
    lines = [head]
    for row in rows:
        times = ["-" if us is None else f"{us:.1f}" for us in (row.ranged_us, row.alone_us, row.code_us)]
        part = "-" if row.of_alone is None else f"{row.of_alone:.2f}"
        wrong = [name for name, right in row.right.items() if not right]
        notes = [row.why, *(["slower than the code"] if row.is_slower else []), *(f"{name} is WRONG" for name in wrong)]
        runs = "kernel" if row.offered else "code"
        lines.append([row.program, row.size, *times, part, runs, "; ".join(filter(None, notes))])
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    said = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*said, "", *summaries(rows)])


def summaries(rows: Sequence[Row]) -> list[str]:
    """One line for each program."""
    found: list[str] = []
    for program in dict.fromkeys(row.program for row in rows):
        own = [row for row in rows if row.program == program]
        parts = [row.of_alone for row in own if row.of_alone is not None]
        slower = [row.size for row in own if row.is_slower]
        gains = [row.code_us / row.runs_us for row in own if row.code_us and row.runs_us]
        said = f"{program}: {len(parts)} sizes compared"
        if parts:
            enough = sum(part >= LEAST for part in parts)
            said += f", of a kernel for the size at least {min(parts):.2f}, {geometric(parts):.2f} in the mean"
            said += f"; {enough} of {len(parts)} reach {LEAST}"
        if gains:
            said += f"; {geometric(gains):.2f} times the code in the mean"
        found.append(f"{said}; slower than the code at {', '.join(slower) or 'no size'}")
    return found
