"""Blocks that go round a loop differently often are surveyed side by side, and what is said is what is said of them one
by one."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.triton_text.refusals import Refused
from mugraph.triton_text.running import Launch
from mugraph.triton_text.uneven import UnevenLoop
from numpy.typing import NDArray

from tests.engine.triton_text.texts import launched

_BLOCKS, _ROWS, _COLUMNS = 8, 4, 8
_TEXT = """\
@triton.jit
def kernel(a_ptr, out_ptr, N, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    row_ptr = a_ptr + columns
    before = tl.load(a_ptr + columns)
    for row in range({ends}):
{body}
{after}
    tl.store(out_ptr + pid * COLUMNS + columns, total)


def launch(a):
    out = torch.empty(({blocks}, {columns}), dtype=a.dtype)
    kernel[({blocks},)](a, out, a.shape[0], BLOCK={rows}, COLUMNS={columns})
    return out
"""
_ENDS = "0, (pid + 1) * BLOCK"
_READS = "total += tl.load(a_ptr + row * COLUMNS + columns)"


def _text(body: str = _READS, ends: str = _ENDS, after: str = "pass") -> str:
    inside = "\n".join(f"        {line}" for line in body.splitlines())
    behind = "\n".join(f"    {line}" for line in after.splitlines())
    return _TEXT.format(ends=ends, body=inside, after=behind, blocks=_BLOCKS, rows=_ROWS, columns=_COLUMNS)


def _numbers() -> NDArray[np.int64]:
    return np.random.default_rng(5).integers(-9, 10, (_BLOCKS * _ROWS, _COLUMNS))


def _surveys(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[object, int]:
    """What the text gives, or why it is refused; and how many groups of blocks were surveyed."""
    count = 0
    apart = Launch._apart

    def counted(launch: Launch, blocks: NDArray[np.int64], reals: object, most: int) -> None:
        def evaluate(one: Launch, group: NDArray[np.int64], numbers: object) -> None:
            nonlocal count
            count += numbers is None
            own(one, group, numbers)

        own, launch.evaluate = launch.evaluate, evaluate
        try:
            apart(launch, blocks, reals, most)
        finally:
            launch.evaluate = own

    with monkeypatch.context() as patched:
        patched.setattr(Launch, "_apart", counted)
        try:
            return launched(text, [_numbers()]).tolist(), count
        except Refused as error:
            return (type(error), str(error), getattr(error, "check", ""), getattr(error, "where", {})), count


def _never(loop: UnevenLoop, *_: object) -> None:
    raise loop.apart()


def _both(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[object, object, int]:
    together, count = _surveys(monkeypatch, text)
    with monkeypatch.context() as patched:
        patched.setattr(UnevenLoop, "go_round", _never)
        alone, _ = _surveys(patched, text)
    return together, alone, count


def _sums() -> list[list[int]]:
    return np.cumsum(_numbers(), 0)[_ROWS - 1 :: _ROWS].tolist()


def test_all_blocks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together, alone, count = _both(monkeypatch, _text())
    assert together == alone == _sums()
    assert count == 1


def test_what_a_block_would_read_in_rounds_that_it_has_not_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block alone goes round most often; further on the others would be outside of the tensor."""
    body = "total += tl.load(a_ptr + (row + pid * BLOCK) * COLUMNS + columns)"
    together, alone, count = _both(monkeypatch, _text(body, ends="0, N - pid * BLOCK"))
    every = _numbers().sum(0)
    assert together == alone == [(every - one).tolist() for one in [0 * every, *np.array(_sums())[:-1]]]
    assert count == 1


@pytest.mark.parametrize(
    ("ends", "body"),
    [
        ("0, (pid + 1) * BLOCK + 1", _READS),
        ("0, (pid + 1) * BLOCK", "total += tl.load(a_ptr + (row + 1) * COLUMNS + columns)"),
        ("-1, (pid + 1) * BLOCK", _READS),
        ("0, (pid + 1) * BLOCK", "total += tl.load(out_ptr + columns)"),
    ],
)
def test_what_is_wrong_is_refused_in_the_same_words(monkeypatch: pytest.MonkeyPatch, ends: str, body: str) -> None:
    together, alone, count = _both(monkeypatch, _text(body, ends))
    assert isinstance(together, tuple)
    assert together == alone
    assert count > 1


@pytest.mark.parametrize(
    ("body", "ends", "after"),
    [
        (f"{_READS}\nrow_ptr = row_ptr + COLUMNS", _ENDS, "total += tl.load(row_ptr - COLUMNS)"),
        (f"{_READS}\nlast = row", _ENDS, "total += tl.load(a_ptr + last * COLUMNS + columns)"),
        (_READS, _ENDS, "total += tl.load(a_ptr + row * COLUMNS + columns)"),
        (f"{_READS}\nif row == 5:\n    break", _ENDS, "pass"),
        (f"{_READS}\ntl.store(out_ptr + pid * COLUMNS + columns, total)", _ENDS, "pass"),
        (f"for _ in range(0, row % 3):\n    {_READS}", _ENDS, "pass"),
        ("total = tl.load(a_ptr + row * COLUMNS + columns)\nown = total", "-pid, 0 * pid", "pass"),
    ],
)
def test_what_is_not_the_same_for_all_is_looked_at_apart(
    monkeypatch: pytest.MonkeyPatch, body: str, ends: str, after: str
) -> None:
    together, alone, count = _both(monkeypatch, _text(body, ends, after))
    assert together == alone
    assert count > 1


def test_a_second_loop_with_other_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    again = f"for row in range(0, N - pid * BLOCK):\n    {_READS}"
    together, alone, count = _both(monkeypatch, _text(after=again))
    assert together == alone
    assert count == 1


def test_a_name_that_some_blocks_never_set(monkeypatch: pytest.MonkeyPatch) -> None:
    together, alone, _ = _both(monkeypatch, _text(f"{_READS}\nmine = total", "0, pid", "total += mine"))
    assert together == alone
