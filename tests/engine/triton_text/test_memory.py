"""What a kernel may not do with memory, whatever it computes."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.triton_text.refusals import Unreadable, Wrong

from tests.engine.triton_text.texts import launched

_BODY = """\
@triton.jit
def kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{body}


def launch(a):
{launcher}
"""
_RIGHT = "x = tl.load(a_ptr + offs, mask=offs < n, other=0.0)\ntl.store(out_ptr + offs, x, mask=offs < n)"
_LAUNCH = "out = torch.empty_like(a)\nkernel[(3,)](a, out, a.numel(), BLOCK=8)\nreturn out"


def run(body: str = _RIGHT, launcher: str = _LAUNCH) -> object:
    lines = ("\n".join(f"    {line}" for line in text.splitlines()) for text in (body, launcher))
    return launched(_BODY.format(body=next(lines), launcher=next(lines)), [np.arange(20)])


def refused(check: str, body: str = _RIGHT, launcher: str = _LAUNCH) -> str:
    with pytest.raises(Wrong) as error:
        run(body, launcher)
    assert error.value.check == check, str(error.value)
    assert error.value.line
    return str(error.value)


def test_a_right_one_is_read() -> None:
    assert np.array_equal(run(), np.arange(20))


def test_reads_beyond_the_end() -> None:
    reason = refused("bounds", _RIGHT.replace("mask=offs < n, other=0.0", "mask=offs < n + 1, other=0.0"))
    assert "block (2, 0, 0) of kernel reads element 20 of x0, which has 20" in reason
    assert "(line 9)" in reason


def test_reads_before_the_beginning() -> None:
    assert "element -1 of" in refused("bounds", _RIGHT.replace("a_ptr + offs", "a_ptr + offs - 1"))


def test_writes_beyond_the_end() -> None:
    assert "writes" in refused("bounds", _RIGHT.replace("x, mask=offs < n", "x"))


def test_writes_of_two_blocks() -> None:
    reason = refused(
        "order",
        _RIGHT.replace("out_ptr + offs", "out_ptr + offs // 2 * 2 + tl.arange(0, BLOCK) % 2 - tl.program_id(0) * 2"),
    )
    assert "is written by" in reason


def test_writes_of_two_lanes() -> None:
    assert "two lanes of block (0, 0, 0)" in refused("order", _RIGHT.replace("out_ptr + offs", "out_ptr + offs // 2"))


def test_a_block_reads_what_another_writes() -> None:
    body = f"{_RIGHT}\ntl.debug_barrier()\ny = tl.load(out_ptr + offs - 1, mask=(offs < n) & (offs > 0), other=0.0)"
    assert "reads x_out[7], which block (0, 0, 0) of kernel writes".replace(
        "x_out", "tensor 0 of the launcher"
    ) in refused("order", body)


def test_a_block_reads_what_it_wrote_without_a_barrier() -> None:
    body = f"{_RIGHT}\ny = tl.load(out_ptr + offs, mask=offs < n, other=0.0)"
    assert "without a barrier" in refused("order", body)
    assert np.array_equal(run(body.replace("\ny =", "\ntl.debug_barrier()\ny =")), np.arange(20))


def test_scratch_that_nothing_wrote() -> None:
    launcher = _LAUNCH.replace("kernel[(3,)](a, out", "middle = torch.empty_like(a)\nkernel[(3,)](middle, out")
    assert "never written" in refused("unwritten", launcher=launcher)


def test_scratch_that_was_written_in_part() -> None:
    launcher = _LAUNCH.replace(
        "kernel[(3,)](a, out",
        "middle = torch.empty_like(a)\nkernel[(2,)](a, middle, a.numel(), BLOCK=8)\nkernel[(3,)](middle, out",
    )
    assert "reads tensor 1 of the launcher[16], which was never written" in refused("unwritten", launcher=launcher)


def test_scratch_that_is_written_too_late() -> None:
    launcher = (
        "out = torch.empty_like(a)\nmiddle = torch.empty_like(a)\nkernel[(3,)](middle, out, a.numel(), BLOCK=8)\n"
        "kernel[(3,)](a, middle, a.numel(), BLOCK=8)\nreturn out"
    )
    assert "never written" in refused("unwritten", launcher=launcher)


def test_an_output_that_is_not_written_whole() -> None:
    assert "never written" in _unwritten(_LAUNCH.replace("(3,)", "(2,)"))


def _unwritten(launcher: str) -> str:
    with pytest.raises(Wrong) as error:
        run(launcher=launcher)
    return str(error.value)


def test_between_the_elements_of_a_strided_tensor() -> None:
    text = (
        "@triton.jit\ndef kernel(a_ptr, out_ptr, N: tl.constexpr):\n    n = tl.arange(0, N)\n"
        "    tl.store(out_ptr + n, tl.load(a_ptr + n))\n\n\n"
        "def launch(a):\n    out = torch.empty((8,), dtype=a.dtype)\n    kernel[(1,)](a, out, N=8)\n    return out\n"
    )
    with pytest.raises(Wrong, match="is none of its own"):
        launched(text, [np.zeros(4, np.int64)], [(3,)])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = tl.inline_asm_elementwise('', '', [], tl.float32, True, 1)", "inline_asm_elementwise is not read"),
        ("x = tl.load(a_ptr + offs, mask=offs < n, other=0.0).to(tl.int32)", "converted to an integer"),
        ("if tl.load(a_ptr) > 0:\n    pass", "depends on floating-point numbers"),
        ("x = unknown(offs)", "unknown is not defined"),
        ("tl.atomic_cas(a_ptr, 0, 1)", "atomic_cas is not read"),
    ],
)
def test_what_cannot_be_read_is_named(body: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        run(body)
