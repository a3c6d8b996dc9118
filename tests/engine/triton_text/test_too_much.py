"""What would take too long is surveyed whole, and its numbers are looked at elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.region import SearchUnit
from mugraph.search import Limits, schedules, topologies
from mugraph.sizes import text as sizes_text
from mugraph.sizes.text import text_checked
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.triton_text import owners
from mugraph.triton_text.calls.call import Call, _row_places
from mugraph.triton_text.check import TOO_MUCH, check_text
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.owners import Runs, in_order
from mugraph.triton_text.refusals import TooMuch
from mugraph.triton_text.tensors import HostTensor, dense
from mugraph.units.joining import units

TARGET = TARGETS["h200"]
MODEL = """\
# mugraph: x=f32[64, 256], w=f32[256, 128]
def product(x, w):
    return x @ w
"""


def written(path: Path):
    path.write_text(MODEL)
    (region,) = trace_file(path).regions
    (unit,) = units(region)
    assert isinstance(unit, SearchUnit)
    block = next(one.block for one in topologies(unit.program, Limits()) if one.block.loops)
    schedule = schedules(block, TARGET)[0].schedule
    return unit.program, block, schedule, lower(block, schedule, target=TARGET)


def test_the_verdict_says_that_no_number_was_looked_at(tmp_path: Path) -> None:
    program, _, _, source = written(tmp_path / "model.py")
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    found = check_text(program, source.standalone(), f"launch_{source.name}", inputs, outputs, most=10)
    assert (found.passed, found.check, found.run) == (True, TOO_MUCH, 0)
    assert "too many elements" in found.said
    wrong = source.standalone().replace("tl.store(", "tl.store(2 + ", 1)
    assert not check_text(program, wrong, f"launch_{source.name}", inputs, outputs, most=10).passed  # its memory
    whole = check_text(program, source.standalone(), f"launch_{source.name}", inputs, outputs)
    assert (whole.passed, whole.check) == (True, "")


def test_elements_that_lie_apart_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a gigabyte of a convolution's output took all of a computer's memory, and the process with it."""
    monkeypatch.setattr(owners, "MOST_RUNS", 8)
    written, places = owners.Owners(), np.arange(0, 12, 2)
    assert written.add(Runs(places, places + 1, places)) is None
    with pytest.raises(TooMuch, match="more than 8 elements are written apart from one another"):
        written.add(Runs(places + 20, places + 21, places))


def test_then_the_kernels_are_run_at_smaller_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, block, schedule, source = written(tmp_path / "model.py")
    assert "written for" not in (text_checked(program, source, [(block, schedule)]).text or "")
    whole = sizes_text.check_text

    def limited(small, *arguments, most, **named):
        return whole(small, *arguments, most=10 if small.sizes == program.sizes else most, **named)

    monkeypatch.setattr(sizes_text, "check_text", limited)
    found = text_checked(program, source, [(block, schedule)])
    assert found.passed, found.reason
    assert "too many elements" in (found.text or "")
    assert "written for" in (found.text or "")
    assert "blocks run over the fields" in (found.text or "")


@pytest.mark.parametrize("starts", [[0, 3, 9], [9, 0, 3], [4], []])
def test_runs_are_put_in_order_where_they_are_not(starts: list[int]) -> None:
    array = np.array(starts, np.int64)
    runs = Runs(array, array + 1, array)
    assert list(runs.starts[in_order(runs.starts)]) == sorted(starts)


def test_rows_of_a_call_are_runs() -> None:
    def rows(shape: tuple[int, ...], strides: tuple[int, ...]) -> Runs:
        memory = Memory("out", 24, "float32", shape, strides)
        call = Call.__new__(Call)
        call.out = HostTensor(memory, shape, strides)
        return call._rows()

    shape = (2, 3, 4)
    side_by_side = rows(shape, dense(shape))
    assert list(side_by_side.starts) == [0, 4, 8, 12, 16, 20]
    assert list(side_by_side.ends) == [4, 8, 12, 16, 20, 24]
    assert list(side_by_side.blocks) == [0, 1, 2, 3, 4, 5]
    apart = rows(shape, (12, 1, 3))  # its channels last
    assert sorted(apart.starts) == list(range(24))
    assert list(apart.blocks) == [row for row in range(6) for _ in range(4)]
    one = rows((2, 12, 1), (12, 1, 12))
    assert sorted(one.starts) == list(range(24))
    assert (one.ends - one.starts == 1).all()


@pytest.mark.parametrize("strides", [(12, 4, 1), (12, 1, 3), (0, 4, 1)])
def test_rows_lie_where_their_elements_do(strides: tuple[int, int, int]) -> None:
    shape, rows = (2, 3, 4), np.array([0, 2, 5])
    tensor = HostTensor(Memory("x", 30, "float32", shape, strides), shape, strides, offset=5)
    assert list(_row_places(tensor, rows)) == list(tensor.places().reshape(6, 4)[rows].reshape(-1))
