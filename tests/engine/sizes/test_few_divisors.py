"""Fixed sizes that few powers of two divide: reductions are split into parts of which the last is shorter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.kernel import Rejected
from mugraph.ir.parts import in_whole_parts, ragged_parts
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates, split_candidates
from mugraph.search.schedules.varying_parts import divides_badly
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.indexed import indexed
from mugraph.sizes.smaller import smaller
from mugraph.sizes.table import SizeTable
from mugraph.sizes.text import text_checked
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units
from mugraph.verification.verifier import verify_schedules, verify_topologies

from tests.engine.sizes.decoding import DECODE, RUN, TARGET, Made, run
from tests.engine.sizes.solving import solved

KEYS = 1531  # a prime
PRODUCT = """\
import torch


# mugraph: rows=f16[{rows}, 64], taps=f16[48, 64]
def mix(rows, taps):
    return torch.relu(rows @ taps.T) @ taps
"""


def made_of(text: str, folder: Path) -> Made:
    path = folder / "code.py"
    path.write_text(text)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    blocks = [found.block for found in Search(unit.program, Limits(seconds=5)).run()]
    outputs = [tensor.name for tensor in unit.program.outputs.values()]
    return Made(unit.program, blocks, split_candidates(blocks, TARGET), SizeTable(unit.program, TARGET, outputs))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made_of(DECODE.format(sizes="b=2", keys=KEYS), tmp_path_factory.mktemp("prime"))


def test_a_prime_number_of_keys_is_split_and_right(made: Made, tmp_path: Path) -> None:
    (block, schedule), (second, _) = made.kernels
    parts = ragged_parts(made.program, block, schedule)
    assert parts is not None
    assert second.sizes[parts.split] == -(-KEYS // schedule.part)
    verdict = verify_topologies(made.program, [(one, None) for one, _ in made.kernels])
    assert verdict.passed, verdict.reason
    source = made.table.source(made.kernels)
    assert not source.least
    assert not source.kernels[0].divided  # nothing is chosen at run time
    assert (tiles := indexed(made.program, made.kernels, source)).passed, tiles.reason
    assert (text := text_checked(made.program, source, made.kernels)).passed, text.reason
    run(RUN.format(folder=str(tmp_path), sizes=[KEYS]), source, tmp_path)


def test_what_is_estimated_is_near_the_next_round_size(made: Made, tmp_path: Path) -> None:
    round_one = made_of(DECODE.format(sizes="b=2", keys=1536), tmp_path)
    # A part of 24 keys is held as a whole; one of a ragged end is walked in a loop.
    assert made.candidates[0].estimate_us < 1.15 * round_one.candidates[0].estimate_us


def test_a_text_without_the_end_of_the_last_part_is_wrong(made: Made) -> None:
    source = made.table.source(made.kernels)
    axis = ragged_parts(made.program, *made.kernels[0])
    assert axis is not None
    name = axis.axis
    mask, end = f"offs_{name} < {name.upper()}", f", {name.upper()})"
    assert mask in source.jit
    assert end in source.jit
    for wrong in (
        source.jit.replace(mask, f"offs_{name} < {name.upper()} + 1"),
        source.jit.replace(mask, f"offs_{name} < {name.upper()} - 1"),
        source.jit.replace(end, f", {name.upper()} - BLOCK_{name.upper()})"),
    ):
        found = text_checked(made.program, replace(source, jit=wrong), made.kernels)
        assert not found.passed


@pytest.mark.parametrize("longer", [2, 0.5])
def test_parts_that_do_not_cover_the_axis_are_refused(made: Made, longer: float) -> None:
    (block, schedule), then = made.kernels
    wrong = replace(schedule, part=int(schedule.part * longer))
    with pytest.raises(Rejected, match="do not cover"):
        lower_kernels([(block, wrong), then], target=TARGET, program=made.program)


def test_fewer_parts_than_the_axis_has_are_refused(made: Made) -> None:
    (block, schedule), then = made.kernels
    parts = ragged_parts(made.program, block, schedule)
    assert parts is not None
    fewer = replace(block, sizes={**block.sizes, parts.split: block.sizes[parts.split] - 1})
    with pytest.raises(Rejected, match="do not cover"):
        lower_kernels([(fewer, schedule), then], target=TARGET, program=made.program)


def test_at_smaller_sizes_the_last_part_stays_shorter(made: Made) -> None:
    small, kernels = smaller(made.program, made.kernels)
    block, schedule = kernels[0]
    parts = ragged_parts(small, block, schedule)
    assert parts is not None
    assert small.sizes[parts.axis] % schedule.loops[parts.part]
    assert verify_schedules(small, kernels).passed
    whole, _ = in_whole_parts(small, kernels)
    assert whole.sizes[parts.axis] == block.sizes[parts.split] * block.sizes[parts.part]


def test_strides_that_are_not_the_programs_are_wrong(made: Made) -> None:
    (block, schedule), then = made.kernels
    moved = tuple(
        replace(one, strides=(one.strides[0] + 64, *one.strides[1:])) if len(one.dims) == 3 and one in block.inputs
        else one for one in block.tensors
    )  # fmt: skip
    source = made.table.source(made.kernels)
    assert not indexed(made.program, [(replace(block, tensors=moved), schedule), then], source).passed


def test_what_powers_of_two_divide_is_split_as_before() -> None:
    assert not any(map(divides_badly, (32, 64, 96, 256, 1536, 3072, 4096, 50304)))
    assert all(map(divides_badly, (77, 197, 1531, 3000, 3001, 50257)))


@pytest.mark.parametrize(("rows", "more"), [(197, 256), (141, 144)])
def test_a_side_of_a_product_has_tiles_though_all_pad_it(rows: int, more: int, tmp_path: Path) -> None:
    found = [made_of(PRODUCT.format(rows=n), tmp_path) for n in (rows, more)]
    one, other = (kernel_candidates(each.blocks, TARGET)[0].estimate_us for each in found)
    assert one < 1.1 * other


SOFTMAX = """\
import torch


# mugraph: scores=f16[8, {columns}]
def shares(scores):
    return torch.softmax(scores, dim=-1)
"""


def test_one_kernel_has_the_axis_in_parts_and_another_has_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(SOFTMAX.format(columns=500009))
    _, source, _ = solved(path, ["shares"])["shares"]  # tested in the interpreter
    assert len(source.kernels) > 2
    assert "PART_" in source.kernels[0].jit
