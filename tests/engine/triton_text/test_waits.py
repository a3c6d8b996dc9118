"""What a kernel may not do before it waits, where it is launched before the kernel before it has ended."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.triton_text.refusals import Wrong

from tests.engine.triton_text.texts import launched

_TEXT = """\
from triton.language.extra.cuda import gdc_wait


@triton.jit
def waits():
    gdc_wait()


@triton.jit
def first(a_ptr, middle_ptr, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_launch_dependents()
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {first_wait}
    tl.store(middle_ptr + offs, tl.load(a_ptr + offs) * 2)


@triton.jit
def second(middle_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
{body}


def launch(a, b):
    middle = torch.empty_like(a)
    out = torch.empty_like(a)
    first[(4,)](a, middle, BLOCK=8{first_early})
    {between}
    second[(4,)](middle, b, out, BLOCK=8, ROUNDS={rounds}, launch_pdl={early})
    return out
"""
_BODY = """\
b = tl.load(b_ptr + offs)
tl.extra.cuda.gdc_wait()
x = tl.load(middle_ptr + offs)
tl.store(out_ptr + offs, x + b)"""
_AT_THE_TOP = """\
tl.extra.cuda.gdc_wait()
b = tl.load(b_ptr + offs)
x = tl.load(middle_ptr + offs)
tl.store(out_ptr + offs, x + b)"""
_WAIT = "tl.extra.cuda.gdc_wait()"
_READS_B = "second is launched before the kernel before it has ended, and reads x1 before it waits, and what is before"


def run(body: str = _BODY, early: object = True, **given: object) -> None:
    filled = {"between": "pass", "first_wait": "pass", "first_early": "", "rounds": 1, **given}
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    a, b = np.arange(32), np.arange(32)[::-1].copy()
    assert np.array_equal(launched(_TEXT.format(body=lines, early=early, **filled), [a, b]), 2 * a + b)


def refused(body: str = _BODY, **given: object) -> str:
    with pytest.raises(Wrong) as error:
        run(body, **given)
    assert error.value.check == "order"
    assert error.value.line
    return str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        _BODY,
        _AT_THE_TOP,
        _BODY.replace(_WAIT, "gdc_wait()"),
        _BODY.replace(_WAIT, "waits()"),
        _BODY.replace(_WAIT, f"if pid < 4:\n    {_WAIT}"),
        _BODY.replace(_WAIT, f"for _ in range(ROUNDS):\n    {_WAIT}"),
        f"if pid > 1:\n    {_WAIT}\nelse:\n    {_WAIT}\n{_BODY}",
        _BODY.replace(_WAIT, f"tl.extra.cuda.gdc_launch_dependents()\n{_WAIT}"),
    ],
)
def test_what_waits_in_every_block_is_right(body: str) -> None:
    run(body)


def test_without_the_option_nothing_needs_to_wait() -> None:
    run(_BODY.replace(f"{_WAIT}\n", ""), early=False)
    run(_BODY.replace(f"{_WAIT}\n", ""), early=0)
    run(early=False)


MUTANTS = {
    "no wait": (_BODY.replace(f"{_WAIT}\n", ""), "reads tensor 0 of the launcher before it waits"),
    "after the load": (
        "x = tl.load(middle_ptr + offs)\nb = tl.load(b_ptr + offs)\ntl.extra.cuda.gdc_wait()\n"
        "tl.store(out_ptr + offs, x + b)",
        "what a kernel before it writes may not be there yet",
    ),
    "after a masked load": (
        f"y = tl.load(middle_ptr + offs, mask=offs < 1, other=0.0)\n{_BODY}",
        "reads tensor 0 of the launcher before it waits",
    ),
    "after a store": (
        f"tl.store(out_ptr + offs, tl.load(b_ptr + offs))\ntl.debug_barrier()\n{_BODY}",
        "writes to tensor 1 of the launcher before it waits: a kernel before it may still use what is there",
    ),
    "after an addition": (f"tl.atomic_add(out_ptr + offs, tl.load(b_ptr + offs))\n{_BODY}", "before it waits"),
    "in one block": (_BODY.replace(_WAIT, f"if pid == 0:\n    {_WAIT}"), "before it waits"),
    "not in the last block": (_BODY.replace(_WAIT, f"if pid != 3:\n    {_WAIT}"), "before it waits"),
    "after a return": (f"if pid == 2:\n    return\n{_BODY}", "has blocks that end without tl.extra.cuda.gdc_wait()"),
    "in a loop that does not run": (_BODY.replace(_WAIT, f"for _ in range(pid, 1):\n    {_WAIT}"), "before it waits"),
    "in the branch that is not taken": (_BODY.replace(_WAIT, f"if ROUNDS > 1:\n    {_WAIT}"), "before it waits"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_does_not_wait_is_refused(name: str) -> None:
    body, why = MUTANTS[name]
    reason = refused(body)
    assert reason.startswith("second is launched before the kernel before it has ended, and ")
    assert why in reason


def test_what_reads_nothing_of_the_others_waits_too() -> None:
    """Its end has to say that the kernels before it have ended."""
    body = "x = tl.load(b_ptr + offs)\nif pid > 7:\n    tl.store(out_ptr + offs, x)"
    assert "has blocks that end without" in refused(body)


@pytest.mark.parametrize("between", ["torch.zeros((4,))", "other = torch.clone(b)", "other = torch.matmul(b, b)"])
def test_after_a_call_of_pytorchs_nothing_is_read_before(between: str) -> None:
    between = between.replace("torch.matmul(b, b)", "torch.matmul(b.view(4, 8), b.view(8, 4))")
    assert _READS_B in refused(between=between)
    run(_AT_THE_TOP, between=between)


def test_what_is_only_allocated_changes_nothing() -> None:
    run(between="other = torch.empty((4,))")


def test_where_the_first_kernel_starts_early_nothing_is_known_to_be_there() -> None:
    given = {"first_early": ", launch_pdl=True"}
    assert "first is launched before" in refused(**given)
    assert _READS_B in refused(first_wait=_WAIT, **given)
    run(_AT_THE_TOP, first_wait=_WAIT, **given)


def test_a_kernel_that_comes_after_all_makes_what_is_given_known() -> None:
    """An early one, one that is not, an early one."""
    given = {"first_early": ", launch_pdl=True", "first_wait": _WAIT}
    again = "first[(4,)](a, middle, BLOCK=8)"
    run(between=again, **given)
    assert _READS_B in refused(between=again.replace("8)", "8, launch_pdl=True)"), **given)
