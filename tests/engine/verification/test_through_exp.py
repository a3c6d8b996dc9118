"""sigmoid, tanh, silu and GELU by tanh are what they are made of: the same function, however it is written.

What the fields do not see: past another exponential nothing is known of a sigmoid.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.verification.float_inputs import make_inputs, scenarios
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_schedule, verify_topology

from tests.engine.verification.through_exp import SIZES, Writer, X, Y, Z, logistic

Write = Callable[["Writer"], str]


def cubic(w: Writer, slope: float = 1.5957691216057308, cube: float = 0.044715) -> str:
    """The argument of GELU's sigmoid."""
    return w.mul(slope, w.add(w.x, w.mul(w.mul(cube, w.x), w.mul(w.x, w.x))))


def hyperbolic(w: Writer, sign: float = -1.0) -> str:
    """(exp(2x) - 1) / (exp(2x) + 1)"""
    power = w.exp(w.mul(2.0, w.x))
    return w.div(w.add(power, sign), w.add(power, 1.0))


def verdict(one: Write, other: Write) -> Verdict:
    """Is the graph of `other` the program of `one`?"""
    p, b = Writer(), Writer()
    value = one(p)
    program = TensorProgram("one", SIZES, (X, Y), tuple(p.ops), {value: Z})
    b.store(other(b), Z)
    return verify_topology(program, BlockGraph("other", SIZES, (X, Y, Z), tuple(b.ops), ()))


EQUAL: dict[str, tuple[Write, Write]] = {
    "sigmoid through exp": (lambda w: w.sigmoid(w.x), lambda w: logistic(w, w.x)),
    "of a difference": (
        lambda w: w.sigmoid(w.add(w.x, w.mul(-1.0, w.y))),
        lambda w: w.div(w.exp(w.x), w.add(w.exp(w.x), w.exp(w.y))),
    ),
    "of the negative": (lambda w: w.add(1.0, w.mul(-1.0, w.sigmoid(w.x))), lambda w: w.sigmoid(w.mul(-1.0, w.x))),
    "tanh by sigmoid": (lambda w: w.fn("tanh", w.x), lambda w: w.add(w.mul(2.0, w.sigmoid(w.mul(2.0, w.x))), -1.0)),
    "tanh through exp": (lambda w: w.fn("tanh", w.x), hyperbolic),
    "tanh is odd": (lambda w: w.fn("tanh", w.mul(-1.0, w.x)), lambda w: w.mul(-1.0, w.fn("tanh", w.x))),
    "silu by sigmoid": (lambda w: w.fn("silu", w.x), lambda w: w.mul(w.x, w.sigmoid(w.x))),
    "silu through exp": (
        lambda w: w.fn("silu", w.x),
        lambda w: w.div(w.x, w.add(1.0, w.exp(w.mul(-1.0, w.x)))),
    ),
    "GELU by sigmoid": (lambda w: w.fn("gelu_tanh", w.x), lambda w: w.mul(w.x, w.sigmoid(cubic(w)))),
    "GELU by tanh": (
        lambda w: w.fn("gelu_tanh", w.x),
        lambda w: w.mul(w.mul(0.5, w.x), w.add(1.0, w.fn("tanh", cubic(w, slope=0.7978845608028654)))),
    ),
    "GELU through exp": (lambda w: w.fn("gelu_tanh", w.x), lambda w: w.mul(w.x, logistic(w, cubic(w)))),
}
TANH_OF_A_SUM: tuple[Write, Write] = (
    lambda w: w.fn("tanh", w.add(w.x, w.y)),
    lambda w: w.div(
        w.add(w.fn("tanh", w.x), w.fn("tanh", w.y)), w.add(1.0, w.mul(w.fn("tanh", w.x), w.fn("tanh", w.y)))
    ),
)
BEYOND: dict[str, tuple[Write, Write]] = {
    "in another function": (lambda w: w.fn("relu", w.sigmoid(w.x)), lambda w: w.fn("relu", logistic(w, w.x))),
    "softmax of tanh": (
        lambda w: w.softmax(w.fn("tanh", w.x)),
        lambda w: w.softmax(w.add(w.mul(2.0, w.sigmoid(w.mul(2.0, w.x))), -1.0)),
    ),
    "tanh of a softmax": (
        lambda w: w.fn("tanh", w.softmax(w.x)),
        lambda w: w.add(w.mul(2.0, w.sigmoid(w.mul(2.0, w.softmax(w.x)))), -1.0),
    ),
}
"""Outside of the Lax fragment."""
UNEQUAL: dict[str, tuple[Write, Write]] = {
    "another sign": (lambda w: w.sigmoid(w.x), lambda w: logistic(w, w.x, sign=1.0)),
    "another one": (lambda w: w.sigmoid(w.x), lambda w: logistic(w, w.x, one=-1.0)),
    "a sum for a difference": (
        lambda w: w.sigmoid(w.add(w.x, w.y)),
        lambda w: w.div(w.exp(w.x), w.add(w.exp(w.x), w.exp(w.y))),
    ),
    "tanh with 1.7": (lambda w: w.fn("tanh", w.x), lambda w: w.add(w.mul(2.0, w.sigmoid(w.mul(1.7, w.x))), -1.0)),
    "tanh + 2": (lambda w: w.fn("tanh", w.x), lambda w: w.add(w.mul(2.0, w.sigmoid(w.mul(2.0, w.x))), 1.0)),
    "tanh's quotient": (lambda w: w.fn("tanh", w.x), lambda w: hyperbolic(w, sign=1.0)),
    "GELU's slope": (lambda w: w.fn("gelu_tanh", w.x), lambda w: w.mul(w.x, w.sigmoid(cubic(w, slope=1.702)))),
    "GELU's cube": (lambda w: w.fn("gelu_tanh", w.x), lambda w: w.mul(w.x, logistic(w, cubic(w, cube=0.044)))),
    "GELU's half": (
        lambda w: w.fn("gelu_tanh", w.x),
        lambda w: w.mul(w.mul(0.25, w.x), w.add(1.0, w.fn("tanh", cubic(w, slope=0.7978845608028654)))),
    ),
    "GELU with erf": (lambda w: w.fn("gelu", w.x), lambda w: w.mul(w.x, w.sigmoid(cubic(w)))),
    "of a softmax": (lambda w: w.sigmoid(w.softmax(w.x)), lambda w: w.sigmoid(w.softmax(w.mul(2.0, w.x)))),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_function_is_what_it_is_made_of(name: str) -> None:
    one, other = EQUAL[name]
    for found in (verdict(one, other), verdict(other, one)):
        assert found.passed, found.reason
        assert found.lax
        assert found.bound is not None
        assert found.bound <= 1e-9


@pytest.mark.parametrize("name", BEYOND)
def test_outside_of_the_fragment_too(name: str) -> None:
    one, other = BEYOND[name]
    for found in (verdict(one, other), verdict(other, one)):
        assert found.passed, found.reason
        assert not found.lax
        assert found.bound is None


@pytest.mark.parametrize("name", UNEQUAL)
def test_another_function_is_rejected(name: str) -> None:
    one, other = UNEQUAL[name]
    for found in (verdict(one, other), verdict(other, one)):
        assert not found.passed
        assert "differs" in (found.reason or "")


def test_the_sum_of_two_arguments_of_tanh() -> None:
    """Equal, with more exponential terms than the theorem says anything about."""
    found = verdict(*TANH_OF_A_SUM)
    assert found.passed, found.reason
    assert found.lax
    assert "exponential terms" in (found.bound_note or "")


def gated(w: Writer) -> str:
    return w.mul(w.sigmoid(w.x), w.y)


def test_the_evidence_says_how_the_function_was_taken() -> None:
    """Equal graphs are equal whatever the function is; the form is for those that are not."""
    assert "sigmoid taken as a random function" in (verdict(gated, gated).bound_note or "")
    assert "tanh by what it is made of" in (verdict(*EQUAL["tanh by sigmoid"]).bound_note or "")


def test_a_schedule_is_tested_by_the_forms_as_well() -> None:
    p, b = Writer(), Writer()
    value = p.sigmoid(p.x)
    program = TensorProgram("one", SIZES, (X, Y), tuple(p.ops), {value: Z})
    b.store(logistic(b, b.x), Z)
    block = BlockGraph("other", SIZES, (X, Y, Z), tuple(b.ops), ())
    found = verify_schedule(program, block, Schedule((("row", 3), ("column", 4))))
    assert found.passed, found.reason
    wrong = Writer()
    wrong.store(logistic(wrong, wrong.x, sign=1.0), Z)
    found = verify_schedule(
        program, BlockGraph("wrong", SIZES, (X, Y, Z), tuple(wrong.ops), ()), Schedule((("row", 3), ("column", 4)))
    )
    assert not found.passed


@pytest.mark.parametrize("fn", ["sigmoid", "tanh", "gelu_tanh"])
def test_kernels_are_tested_with_large_arguments(fn: str) -> None:
    """Beyond 89, where an exponential in float32 overflows, on either side of zero."""
    p = Writer()
    value = p.fn(fn, p.x)
    program = TensorProgram("one", SIZES, (X, Y), tuple(p.ops), {value: Z})
    drawn = [make_inputs(program, scenario, torch.Generator().manual_seed(0)) for scenario in scenarios(program)]
    arguments = [found.inputs["x"].double() for found in drawn if found is not None]
    assert max(float(x.max()) for x in arguments) > 89
    assert min(float(x.min()) for x in arguments) < -89
