"""Reductions over an axis whose size varies, split over the grid: found, in parts that suit each size, right at every
size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil
from pathlib import Path

import pytest
from mugraph.ir.kernel import KernelSource
from mugraph.ir.parts import parts_of, sizes_in_parts, undivided
from mugraph.ir.transforms.resizing import resize
from mugraph.search.schedules.neighbours import neighbours
from mugraph.sizes.in_parts import lengths
from mugraph.sizes.indexed import indexed
from mugraph.sizes.search_unit import estimates_at
from mugraph.sizes.table import at_sizes, at_step
from mugraph.sizes.text import text_checked
from mugraph.verification.verifier import verify_topologies

from tests.engine.sizes.decoding import DECODE, RUN, TARGET, Made, made_of, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made_of(DECODE.format(sizes="n=1..8192", keys="n"), tmp_path_factory.mktemp("decode"))


@pytest.fixture(scope="module")
def source(made: Made) -> KernelSource:
    return made.table.source(made.kernels)


def part_at(source: KernelSource, size: int) -> int:
    """How long a part is that the launcher takes."""
    return next(launch.part for launch in source.kernels[0].launches if size <= launch.largest)


def test_splits_of_the_keys_are_found_and_right(made: Made) -> None:
    assert made.candidates
    assert all(one.schedule.part for one in made.candidates)
    verdict = verify_topologies(made.program, [(block, None) for block, _ in made.kernels])
    assert verdict.passed, verdict.reason


def test_the_launch_chooses_how_many_parts_there_are(made: Made, source: KernelSource) -> None:
    first, second = source.kernels
    assert dict(first.divided) == {made.axis: f"{made.axis}_split"}
    assert f"{made.axis}_split" not in source.least
    assert len({launch.part for launch in first.launches}) > 1
    assert "n_split = triton.cdiv(n, n_part)" in source.launcher
    assert "range(pid_n_split * PART_N, tl.minimum((pid_n_split + 1) * PART_N, N), BLOCK_N)" in first.jit
    assert "offs_n_split < N_SPLIT" in second.jit
    counts = {size: ceil(size / part_at(source, size)) for size in (1, 16, 64, 300, 1024, 4096, 8192)}
    assert counts[1] == counts[16] == 1
    assert sorted(counts.values()) == list(counts.values())  # more keys, no fewer parts
    assert counts[8192] >= 16
    assert max(counts.values()) <= made.kernels[1][0].sizes[f"{made.axis}_split"]


def test_it_is_proved_and_its_text_is_right(made: Made, source: KernelSource) -> None:
    text = text_checked(made.program, source, made.kernels)
    assert text.passed, text.reason
    assert text.proved_sizes == {made.axis: (1, 8192)}
    tiles = indexed(made.program, made.kernels, source)
    assert tiles.passed, tiles.reason


def test_a_launcher_is_made_again_of_its_schedules(made: Made, source: KernelSource) -> None:
    rows = [[(launch.largest, launch.schedule) for launch in part.launches] for part in source.kernels]
    assert made.table.with_schedules(made.kernels, rows).launcher == source.launcher


def test_estimates_are_of_the_parts_that_are_launched(made: Made, source: KernelSource) -> None:
    found = [
        estimates_at(at_step(made.program, [], size)[0], made.kernels, source, TARGET)[0]
        for size in (1, 64, 512, 4096, 8192)
    ]
    assert all(one <= 1.02 * two for one, two in pairwise(found)), found
    whole = [schedule for _, schedule in made.kernels]
    fixed = made.table.with_schedules(made.kernels, [[(8192, replace(whole[0], part=8192))], []])
    small = at_step(made.program, [], 8192)[0]
    assert estimates_at(small, made.kernels, fixed, TARGET)[0] > 2 * found[-1]  # one block would walk all keys


def test_a_step_of_a_tuner_keeps_whole_tiles_in_a_part(made: Made) -> None:
    steps = [one for one in neighbours(made.candidates[0], TARGET) if one.schedule != made.candidates[0].schedule]
    assert steps
    for one in steps:
        assert one.schedule.part % one.schedule.loops[f"{made.axis}_part"] == 0


@pytest.mark.parametrize("size", [1, 2, 97, 300, 8192])
def test_a_block_graph_at_a_size_has_all_of_the_axis(made: Made, size: int) -> None:
    block = made.kernels[0][0]
    parts = parts_of(block, made.program)
    assert parts is not None
    sizes = sizes_in_parts(block, parts, {made.axis: size})
    assert sizes[parts.split] * sizes[parts.part] == size
    assert sizes[parts.split] <= block.sizes[parts.split]
    small, kernels = at_sizes(made.program, made.kernels, {**made.program.sizes, made.axis: size})
    assert kernels[1][0].sizes[parts.split] == sizes[parts.split]
    keys = next(tensor for tensor in small.tensors if made.axis in tensor.axes)
    whole, _ = undivided(kernels[0][0], kernels[0][1], parts)
    assert whole.tensor(keys.name).shape(whole.sizes) == keys.shape(small.sizes)
    assert resize(small, small.sizes) == small


def test_lengths() -> None:
    assert lengths(1, 64) == [32]
    assert lengths(100, 64) == [32, 64, 128]
    assert lengths(8192, 64)[0] == 128
    assert lengths(8192, 64)[-1] == 8192


@pytest.mark.parametrize(("largest", "counts"), [(3000, {2, 4, 8, 60}), (2047, {23})])
def test_any_largest_size_has_parts(tmp_path: Path, largest: int, counts: set[int]) -> None:
    found = made_of(DECODE.format(sizes=f"n=1..{largest}", keys="n"), tmp_path)
    assert {one.block.sizes[f"{found.axis}_split"] for one in found.candidates} <= counts
    assert found.candidates
    text = text_checked(found.program, found.table.source(found.kernels), found.kernels)
    assert text.passed, text.reason


def test_it_is_right_at_sizes_around_its_borders(made: Made, source: KernelSource, tmp_path: Path) -> None:
    borders = [launch.largest for launch in source.kernels[0].launches]
    sizes = sorted({1, 15, 17, *borders[:-1], *(size + 1 for size in borders[:-1])})
    run(RUN.format(folder=str(tmp_path), sizes=sizes), source, tmp_path)


BOTH = """\
import torch
import torch.nn.functional as F


# mugraph: t=1..32, s=1..1024, q=f16[2, t, 32], k=f16[2, s, 32], v=f16[2, s, 32]
def normed(q, k, v):
    k = F.rms_norm(k, (32,), eps=1e-6)
    return torch.softmax(q @ k.mT * 0.25, dim=-1) @ v
"""
RUN_BOTH = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import kernels
torch.manual_seed(0)
for t, s in {sizes}:
    q, k, v = (torch.randn(2, rows, 32, dtype=torch.float16) for rows in (t, s, s))
    got = kernels.launch_normed(q, k, v)
    normed = torch.nn.functional.rms_norm(k.double(), (32,), eps=1e-6)
    wanted = torch.softmax(q.double() @ normed.mT * 0.25, -1) @ v.double()
    torch.testing.assert_close(got.double(), wanted, rtol=4e-3, atol=4e-3)
print("right")
"""


def test_both_lengths_vary(tmp_path: Path) -> None:
    found = made_of(BOTH, tmp_path)
    assert len(found.program.least) == 2
    (keys,) = found.program.leading
    source = found.table.source(found.kernels)
    assert keys in source.kernels[0].divided
    text = text_checked(found.program, source, found.kernels)
    assert text.passed, text.reason
    assert text.proved_sizes is not None
    assert text.proved_sizes.keys() == found.program.least.keys()
    sizes = [(1, 1), (1, 1000), (17, 33), (32, 1024), (5, 129)]
    run(RUN_BOTH.format(folder=str(tmp_path), sizes=sizes), source, tmp_path)


JOINED = """\
import torch
import torch.nn.functional as F


# mugraph: s=1..1023, c=f16[1, 2, s, 32], q=f16[1, 8, 1, 32], k=f16[1, 2, 1, 32], p=f16[1, 2, s, 32], v=f16[1, 2, 1, 32]
def step(q, k, v, c, p):
    keys = torch.cat((c, k), dim=2)
    values = torch.cat((p, v), dim=2)
    return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
"""


def test_attention_over_keys_that_are_joined_is_split(tmp_path: Path) -> None:
    """PyTorch joins a cache and what is new; the grouped attention over both is one kernel for all lengths."""
    found = made_of(JOINED, tmp_path)
    sizes = {found.program.sizes[axis] for axis in found.program.least}
    assert sizes == {1024}
    source = found.table.source(found.kernels)
    assert source.kernels[0].divided
    text = text_checked(found.program, source, found.kernels)
    assert text.passed, text.reason
    assert text.proved_sizes == {found.axis: (2, 1024)}
