"""The survey of all blocks at once finds what the survey block by block finds: who writes which element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mugraph.triton_text import launcher as launchers
from mugraph.triton_text import owners
from mugraph.triton_text.boxes import surveyed_in_one
from mugraph.triton_text.launcher import LauncherRun
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.refusals import Wrong
from mugraph.triton_text.running import Launch
from mugraph.triton_text.source import read_module
from mugraph.triton_text.tensors import HostTensor, dense, extent_of

from tests.engine.triton_text.texts import HEAD, world_of

Body = tuple[str, str, tuple[int, ...], tuple[int, ...]]
"""Of a kernel; its grid; the shapes of what it reads and writes."""

ROWS: Body = (
    "    row = tl.program_id(0) * 4 + tl.arange(0, 4)\n"
    "    column = tl.program_id(1) * 8 + tl.arange(0, 8)\n"
    "    at = row[:, None] * 22 + column[None, :]\n"
    "    mask = (row < 10)[:, None] & (column < 22)[None, :]\n"
    "    tl.store(out + at, tl.load(x + at, mask=mask, other=0.0), mask=mask)\n",
    "(3, 3)", (10, 22), (10, 22),
)  # fmt: skip
DIGITS: Body = (
    "    pid = tl.program_id(0)\n"
    "    n = pid % 3\n    rest = pid // 3\n    m = rest % 5\n    c = rest // 5\n"
    "    lane = tl.arange(0, 4)\n"
    "    inside = (m * 2 + lane[:, None] >= 1) & (m * 2 + lane[:, None] < 9) & (n * 4 + lane[None, :] < 10)\n"
    "    read = x - 10 + c * 90 + (m * 2 + lane[:, None]) * 10 + n * 4 + lane[None, :]\n"
    "    total = tl.sum(tl.load(read, mask=inside, other=0.0), axis=0)\n"
    "    tl.store(out + (c * 5 + m) * 10 + n * 4 + lane, total, mask=n * 4 + lane < 10)\n",
    "(30,)", (2, 9, 10), (2, 5, 10),
)  # fmt: skip
LOOP: Body = (
    "    row = tl.program_id(0)\n"
    "    for start in range(0, 21, 8):\n"
    "        at = start + tl.arange(0, 8)\n"
    "        tl.store(out + row * 21 + at, tl.load(x + row * 21 + at, mask=at < 21, other=0.0), mask=at < 21)\n",
    "(6,)", (6, 21), (6, 21),
)  # fmt: skip
TWO_AT_A_TIME: Body = (
    "    at = tl.program_id(0) * 8 + tl.arange(0, 4)\n"
    "    tl.store(out + at, tl.load(x + at))\n    tl.store(out + at + 4, tl.load(x + at + 4))\n",
    "(5,)", (40,), (40,),
)  # fmt: skip
GROUPED: Body = (
    "    pid = tl.program_id(0)\n"
    "    first = pid // 6 * 2\n    size = tl.minimum(4 - first, 2)\n"
    "    m = first + pid % size\n    n = pid % 6 // size\n"
    "    lane = tl.arange(0, 4)\n    at = (m * 4 + lane[:, None]) * 12 + n * 4 + lane[None, :]\n"
    "    tl.store(out + at, tl.load(x + at))\n",
    "(12,)", (16, 12), (16, 12),
)  # fmt: skip
STRIDED: Body = (
    "    at = tl.program_id(0) * 24 + tl.arange(0, 8)\n"
    "    tl.store(out + tl.program_id(0) * 8 + tl.arange(0, 8), tl.load(x + at))\n",
    "(4,)", (4, 8), (4, 8),
)  # fmt: skip
EVERY = {"rows": ROWS, "digits": DIGITS, "loop": LOOP, "two": TWO_AT_A_TIME, "grouped": GROUPED, "strided": STRIDED}


def surveyed(
    body: Body,
    in_one: Callable[[Launch], bool],
    monkeypatch: pytest.MonkeyPatch,
    strides: tuple[int, ...] | None = None,
) -> tuple[LauncherRun, Memory]:
    """The launcher, and the memory of its output."""
    kernel, grid, read, written = body
    text = (
        f"{HEAD}@triton.jit\ndef kernel(x, out):\n{kernel}\n\n"
        f"def launch(x):\n    out = torch.empty({written}, device=x.device, dtype=torch.float32)\n"
        f"    kernel[{grid}](x, out)\n    return out\n"
    )
    monkeypatch.setattr(launchers, "surveyed_in_one", in_one)
    run = LauncherRun(world_of())
    strides = strides or dense(read)
    memory = Memory("x", extent_of(read, strides), "float32", read, strides, source=0)
    result = run.evaluator.run(read_module(text).functions["launch"], [HostTensor(memory, read, strides)], {})
    return run, result.memory


def block_by_block(_: Launch) -> bool:
    return False


def strides_of(name: str) -> tuple[int, ...] | None:
    return (24, 1) if name == "strided" else None


def test_in_one_is_what_is_surveyed_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launchers.surveyed_in_one is surveyed_in_one
    looked: list[bool] = []

    def watched(launch: Launch) -> bool:
        looked.append(surveyed_in_one(launch))
        return looked[-1]

    for name, body in EVERY.items():
        surveyed(body, watched, monkeypatch, strides_of(name))
    assert looked == [True] * len(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_both_surveys_find_the_same_writers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, out = surveyed(EVERY[name], surveyed_in_one, monkeypatch, strides_of(name))
    other, same = surveyed(EVERY[name], block_by_block, monkeypatch, strides_of(name))
    places = np.arange(-3, out.size + 3)
    found, listed_owners = (memory.layers[0].owners for memory in (out, same))
    assert (found.of(places) == listed_owners.of(places)).all()
    assert found.fills(out.size)
    for block in range(one.launches[0].blocks):
        assert (np.sort(found.by(block)) == np.sort(listed_owners.by(block))).all()
    assert out.unwritten(1) is None
    assert same.unwritten(1) is None
    assert one.launches[0].largest == other.launches[0].largest
    starts, ends, blocks = found.runs.starts, found.runs.ends, found.runs.blocks
    listed = np.concatenate([np.full(e - s, b + 1) for s, e, b in zip(starts, ends, blocks, strict=True)])
    assert (listed == listed_owners.of(np.arange(out.size))).all()


WRONG: dict[str, tuple[str, str, str, str]] = {
    "a block too few": ("rows", "(3, 3)", "(3, 2)", "never written"),
    "a digit of another size": ("digits", "m = rest % 5\n", "m = rest % 4\n", "is written by"),
    "a stride too small": ("rows", "row[:, None] * 22", "row[:, None] * 21", "written by"),
    "no mask along rows": ("rows", "(row < 10)[:, None] & ", "", "reads element"),
    "a step too long": ("loop", "range(0, 21, 8)", "range(0, 21, 9)", "never written"),
    "a read before the beginning": ("digits", "m * 2 + lane[:, None] >= 1", "m * 2 + lane[:, None] >= 0", "reads"),
    "a read beyond the end": ("digits", "lane[:, None] < 9", "lane[:, None] < 11", "reads"),
    "the second half twice": ("two", "tl.store(out + at + 4", "tl.store(out + at + 3", "never written"),
    "between two rows": ("strided", "* 24 + tl.arange", "* 23 + tl.arange", "is none of its own"),
    "into a gap": ("strided", "tl.load(x + at)", "tl.load(x + at + 1)", "reads|none of its own"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_both(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of, before, after, said = WRONG[name]
    kernel, grid, read, written = EVERY[of]
    body = (kernel.replace(before, after), grid.replace(before, after), read, written)
    assert body != EVERY[of]
    for in_one in (surveyed_in_one, block_by_block):
        if said == "never written":
            _, out = surveyed(body, in_one, monkeypatch, strides_of(of))
            assert out.unwritten(1) is not None
            continue
        with pytest.raises(Wrong, match=said):
            surveyed(body, in_one, monkeypatch, strides_of(of))


def test_millions_of_blocks_take_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = (
        "    pid = tl.program_id(0)\n"
        "    m = pid % 511\n    c = pid // 511 % 64\n    b = pid // 32704\n    lane = tl.arange(0, 16)\n"
        "    at = (b * 64 + c) * 511 * 16 + m * 16 + lane\n    tl.store(out + at, tl.load(x + at))\n"
    )
    body: Body = (kernel, f"({64 * 64 * 511},)", (64, 64, 511, 16), (64, 64, 511, 16))
    monkeypatch.setattr(owners, "Runs", None)  # is never called
    run, out = surveyed(body, surveyed_in_one, monkeypatch)
    assert run.launches[0].blocks == 2093056
    assert out.layers[0].owners.of(np.array([0, 16, 511 * 16, 64 * 511 * 16, out.size - 1])).tolist() == [
        1, 2, 512, 32705, 2093056,
    ]  # fmt: skip
