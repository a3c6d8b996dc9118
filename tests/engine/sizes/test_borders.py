"""Other kernels where a size is small: found by estimate or by measuring, chosen by the launcher, right on both sides
of each border; and borders at the wrong place are not accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, cast

import pytest
from mugraph.codegen.by_size import by_size
from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.kernel import KernelSource, Rejected, UpTo
from mugraph.ir.parts import parts_of
from mugraph.ir.program import TensorProgram
from mugraph.sizes import text, tuning
from mugraph.sizes.border_times import BorderTimes, shortlist, steps_looked_at
from mugraph.sizes.borders import Border, Option, Options, borders, powers
from mugraph.sizes.indexed import indexed
from mugraph.sizes.proved import varying_of
from mugraph.sizes.search_unit import estimates_at
from mugraph.sizes.table import SizeTable, at_sizes, at_step
from mugraph.sizes.text import others_checked, text_checked
from mugraph.sizes.up_to import border_steps, program_up_to, program_up_to_size, up_to_name
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.triton_text.verdict import TextVerdict
from mugraph.tune.statistics import Summary
from mugraph.verification.float_results import FloatResult

from tests.engine.sizes.decoding import DECODE, RUN, TARGET, Made, made_of, run

HELD, WALKED = 16, 256
"""Up to the first size a kernel holds all keys, up to the second another one walks them; beyond, they are split."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made_of(DECODE.format(sizes="n=1..8192", keys="n"), tmp_path_factory.mktemp("decode"))


@pytest.fixture(scope="module")
def options(made: Made) -> list[Option]:
    return Options(made.program, TARGET).of([Candidate(block, Schedule(())) for block in made.blocks])


@pytest.fixture(scope="module")
def split(made: Made) -> KernelSource:
    return made.table.source(made.kernels)


def up_to(made: Made, option: Option, size: int) -> UpTo:
    own = program_up_to(made.program, size)
    assert own is not None
    kernels = [
        (replace(k.block, name=up_to_name("decode", size)), k.schedule) for k in option.at(made.program, size).kernels
    ]
    source = SizeTable(own, TARGET, made.table.outputs).source(kernels)
    return UpTo(made.axis, size, source, tuple(kernels))


def best(options: Sequence[Option], end: int, axis: str, *, walks: bool) -> Option:
    """Of one kernel up to a size, the fastest that walks the keys in a loop, or that holds them."""
    found = [
        one for one in options if one.end == end and any(s.loops.get(axis, end) < end for s in one.schedules) == walks
    ]
    return min(found, key=lambda one: one.us[end])


@pytest.fixture(scope="module")
def source(made: Made, options: list[Option], split: KernelSource) -> KernelSource:
    ends = ((HELD, False), (WALKED, True))
    return by_size(split, [up_to(made, best(options, end, made.axis, walks=walks), end) for end, walks in ends])


def test_kernels_that_are_not_split_are_found_where_there_are_few_keys(
    made: Made, options: list[Option], split: KernelSource
) -> None:
    now = {
        step: estimates_at(at_step(made.program, [], step)[0], made.kernels, split, TARGET)[0]
        for step in powers(made.program)
    }
    found = borders(options, now)
    assert found
    assert [one.end for one in found] == sorted({one.end for one in found})
    assert found[0].begin == 1
    assert found[-1].end < 4096  # the split pays there
    for one in found:
        assert len(one.option.schedules) == 1
        assert parts_of(one.option.chain.block, made.program) is None
        inside = [step for step in now if one.begin <= step <= one.end]
        assert sum(one.option.us[step] for step in inside) < sum(now[step] for step in inside)
    assert not borders(options, dict.fromkeys(now, 0.1))
    assert not borders(options, now, earned=inf)


def test_each_border_earns_its_text() -> None:
    chain = Candidate(cast(Any, None), Schedule(()))
    small, large = (
        Option(4, chain, (), {1: 1.0, 2: 1.0, 4: 4.0}),
        Option(8, chain, (), {1: 2.0, 2: 2.0, 4: 2.0, 8: 2.0}),
    )
    now = {1: 4.0, 2: 4.0, 4: 4.0, 8: 6.0, 16: 1.0}
    assert borders([small, large], now) == [Border(1, 2, small), Border(4, 8, large)]
    assert borders([small, large], now, earned=2.5) == [Border(1, 8, large)]
    assert borders([small, large], now, earned=4.7) == []
    assert borders([replace(large, us={2: 2.0, 8: 2.0})], now) == []  # it is not known at all sizes up to one


def test_it_is_proved_and_tested_at_its_borders(made: Made, source: KernelSource) -> None:
    assert [one.largest for one in source.smaller] == [HELD, WALKED]
    assert border_steps(made.program, source) == [HELD, HELD + 1, WALKED, WALKED + 1]
    found = text_checked(made.program, source, made.kernels)
    assert found.passed, found.reason
    assert found.proved_sizes == {made.axis: (1, 8192)}
    tiles = indexed(made.program, made.kernels, source)
    assert tiles.passed, tiles.reason


def test_the_whole_text_is_checked_for_all_of_its_kernels(made: Made, source: KernelSource) -> None:
    """Each alone need not be, then: also kernels for few that are sent more are found so, and a wrong constant."""
    right = others_checked(made.program, source)
    assert right.passed, right.reason
    assert right.proved_sizes == {made.axis: (1, 8192)}
    held, walked = source.smaller
    further = by_size(made.table.source(made.kernels), [replace(held, largest=64), walked])
    assert not others_checked(made.program, further).passed
    for one in (held, walked):
        scaled = re.sub(r"\b(tl\.exp2?)\(", r"2.0 + \1(", one.source.jit)
        assert scaled != one.source.jit
        others = [
            replace(each, source=replace(each.source, jit=scaled)) if each is one else each for each in (held, walked)
        ]
        found = others_checked(made.program, by_size(made.table.source(made.kernels), others))
        assert not found.passed
        assert f"with {made.axis} = " in (found.reason or "")


def test_no_schedule_is_left_that_no_size_takes(made: Made, source: KernelSource, split: KernelSource) -> None:
    rows, before = (
        [row.largest for one in each.kernels if one.by == made.axis for row in one.launches] for each in (source, split)
    )
    assert min(before) <= WALKED < min(rows)
    assert rows == [largest for largest in before if largest > WALKED]
    ends = [int(end) for end in re.findall(rf"^    (?:el)?if {made.axis} <= (\d+):", source.launcher, re.MULTILINE)]
    assert ends[:2] == [HELD, WALKED]
    assert all(end > WALKED for end in ends[2:])


def test_a_text_that_was_not_checked_before_is_run_above_its_borders(
    made: Made, source: KernelSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    whole = text._checked

    def noted(program: TensorProgram, *given: Any, **more: Any) -> TextVerdict:
        checked.append(program.sizes[made.axis])
        return whole(program, *given, **more)

    monkeypatch.setattr(text, "_checked", noted)
    assert others_checked(made.program, source).passed
    before = set(checked)
    assert max(before) == WALKED + 1
    checked.clear()
    assert others_checked(made.program, source, whole=True).passed
    assert before < set(checked)
    ends = {row.largest for one in source.kernels for row in one.launches if one.by == made.axis}
    assert {4097, 8192, *ends} <= set(checked)


def test_a_device_is_asked_at_its_borders(made: Made, source: KernelSource) -> None:
    judge = Judge(made.axis, wrong_at=HELD + 1)
    tested = tuning.tested_at_sizes(cast(Any, judge), source, made.program)
    assert not tested.passed
    assert f"= {HELD + 1}: wrong" in (tested.reason or "")
    judge = Judge(made.axis)
    assert tuning.tested_at_sizes(cast(Any, judge), source, made.program).passed
    assert {HELD, HELD + 1, WALKED, WALKED + 1, 1, 8192} <= set(judge.sizes)


NOTED = """
launched = []
class Noted:
    def __init__(self, name, kernel):
        self.name, self.kernel = name, kernel
    def __getitem__(self, grid):
        launched.append(self.name)
        return self.kernel[grid]
for name in [one for one in vars(kernels) if one.endswith("_kernel")]:
    setattr(kernels, name, Noted(name, getattr(kernels, name)))
"""
WANTED = """
assert [name for name in launched if "combine" not in name] == {wanted}, launched
"""


def test_the_kernels_of_a_size_are_launched_and_right(made: Made, source: KernelSource, tmp_path: Any) -> None:
    sizes = [1, HELD - 1, HELD, HELD + 1, WALKED, WALKED + 1, 700]
    first = source.kernels[0].function
    names = [one.source.function for one in source.smaller]
    wanted = [*names[:1] * 3, *names[1:] * 2, first, first]
    assert len({*names, first}) == 3
    command = RUN.format(folder=str(tmp_path), sizes=sizes).replace("import kernels\n", f"import kernels\n{NOTED}")
    run(command.replace('print("right")', WANTED.format(wanted=wanted) + 'print("right")'), source, tmp_path)


def test_estimates_are_of_what_is_launched(made: Made, source: KernelSource, split: KernelSource) -> None:
    def us(one: KernelSource, size: int) -> float:
        return estimates_at(at_step(made.program, [], size)[0], made.kernels, one, TARGET)[0]

    assert us(source, HELD) < us(split, HELD)
    assert us(source, WALKED + 1) == us(split, WALKED + 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"n <= {HELD}:", f"n <= {HELD + 1}:"),
        (f"n <= {HELD}:", f"n <= {2 * HELD}:"),
        (f"n <= {HELD}:", f"n < {HELD + 2}:"),
        (f"n <= {HELD}:", f"n >= {HELD}:"),
        (f"n <= {HELD}:", f"n // 2 <= {HELD // 2}:"),
        (f"n <= {HELD}:", f"n % 64 <= {HELD}:"),
        (f"n <= {HELD}:", "n <= 8192:"),
        (f"BLOCK_N={HELD}", f"BLOCK_N={HELD // 2}"),
    ],
)
def test_a_border_that_lies_elsewhere_is_refused(made: Made, source: KernelSource, old: str, new: str) -> None:
    own = source.standalone()
    assert own.count(f"    if {old}") == 1 or own.count(old) == 1, own
    found = check_ranges(made.program, source, varying_of(made.program), own.replace(old, new, 1))
    assert not found.passed
    assert found.check in ("unwritten", "bounds", "order"), found.reason


def test_the_fields_find_it_beside_the_border(made: Made, source: KernelSource) -> None:
    """z3 says that elements are left out; the text that is run finds other numbers."""
    for border, size in ((HELD, HELD), (HELD + 1, HELD + 1)):
        changed = source.standalone().replace(f"    if n <= {HELD}:", f"    if n <= {border}:")
        small, _ = at_sizes(made.program, [], {**made.program.sizes, made.axis: size})
        names = [[one.name for one in tensors] for tensors in (source.inputs, source.outputs)]
        assert check_text(small, changed, f"launch_{source.name}", *names).passed == (border == HELD)


def test_a_table_that_sends_sizes_to_kernels_for_fewer_is_refused(made: Made, source: KernelSource) -> None:
    held, walked = source.smaller
    further = by_size(replace(made.table.source(made.kernels)), [replace(held, largest=64), walked])
    assert not indexed(made.program, made.kernels, further).passed
    assert not text_checked(made.program, further, made.kernels).passed
    for wrong in (replace(held, largest=8192), replace(held, axis="q")):
        assert program_up_to_size(made.program, wrong.axis, wrong.largest) is None
        assert not indexed(made.program, made.kernels, replace(source, smaller=(wrong,))).passed


def test_tables_that_make_no_sense_are_rejected(made: Made, source: KernelSource, split: KernelSource) -> None:
    held, walked = source.smaller
    with pytest.raises(Rejected, match="order"):
        by_size(split, [walked, held])
    with pytest.raises(Rejected, match="order"):
        by_size(split, [held, replace(walked, axis="m")])
    with pytest.raises(Rejected, match="one name"):
        by_size(split, [held, replace(held, largest=32)])
    other = replace(held.source, inputs=held.source.inputs[:2], outputs=held.source.outputs)
    with pytest.raises(Rejected, match="other tensors"):
        by_size(split, [replace(held, source=other)])
    cut = replace(held.source, sizes={**held.source.sizes, "d": 32})
    with pytest.raises(Rejected, match="several lengths"):
        by_size(split, [replace(held, source=cut)])


@dataclass
class Judge:
    """wrong_at: number of keys at which every kernel is wrong."""

    axis: str
    wrong_at: int = 0
    sizes: list[int] = field(default_factory=list[int])

    def test_kernel(self, kernel: Any, program: Any) -> FloatResult:
        size = program.sizes[self.axis]
        self.sizes.append(size)
        return FloatResult(size != self.wrong_at, "wrong" if size == self.wrong_at else None, 1e-3, 1e-3, "a GPU")


@dataclass
class Device:
    """Stands for the measuring process: split kernels take 5 microseconds, others as many as there are hundreds of keys
    and two more, those with two stages one less."""

    measured: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def measure_kernel(self, subject: Any, inputs: Any, rounds: int = 9) -> Summary:
        keys = inputs[-1].shape[1]
        self.measured.append((subject.name, keys))
        if "combine" in subject.source:
            return Summary(5.0, 0.01, rounds)
        return Summary(2.0 + keys / 100 - (1.0 if "num_stages=2" in subject.source else 0.0), 0.01, rounds)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(self, subjects: Sequence[tuple[Any, Any]], rounds: int, **_: object) -> Iterator[Summary]:
        return (self.measure_kernel(subject, inputs, rounds) for subject, inputs in subjects)

    def compare(self, subjects: Sequence[Any], inputs: Any) -> dict[str, Summary]:
        return {subject.name: self.measure_kernel(subject, inputs) for subject in subjects}


def test_a_device_decides_where_the_border_is(made: Made, options: list[Option], split: KernelSource) -> None:
    estimated = {
        step: estimates_at(at_step(made.program, [], step)[0], made.kernels, split, TARGET)[0]
        for step in powers(made.program)
    }
    short = shortlist(options, estimated)
    steps = steps_looked_at(short, powers(made.program))
    assert len(steps) <= 12
    assert {one.begin for one in short} | {one.end for one in short} <= set(steps)
    device = Device()
    times = BorderTimes(made.table, cast(Any, device), cast(Any, Judge(made.axis)), None, lambda one, size: one)
    now = times.now(split, steps)
    assert now == dict.fromkeys(steps, 5.0)
    known = times.measured(short, steps)
    assert known
    for one in known:
        assert one.rows.keys() == one.option.us.keys()
    found = borders([one.option for one in known], now)
    assert found
    assert all(one.option.us[one.end] <= 5.0 for one in found)
    last = next(one for one in known if one.option is found[-1].option)
    assert last.up_to(found[-1].end).schedules == tuple(last.rows[found[-1].end])
