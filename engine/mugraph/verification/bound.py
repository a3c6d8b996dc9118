"""Theorem 2 of Mirage (version 3 of the paper, §5.1): the chance that a wrong graph is accepted, where it is earned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_kernels
from mugraph.verification.forms import NO_ROOTS, Elements, FormArithmetic, Unbounded, difference
from mugraph.verification.primes import P, Q

_MOST_REPETITIONS = 128
_COUNTINGS = 2

Counted = tuple[FormArithmetic, int, int]
"""What was counted with, and the terms and the degree of the difference (forms.difference)."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound for one test.

    terms, degree: k and d of Theorem 2
    one:           the bound for one random seed
    floor:         what no repetition lowers: the chance that the exponents were counted wrongly
    """

    terms: int
    degree: int
    one: float
    floor: float

    def after(self, repetitions: int) -> float:
        return self.one**repetitions + self.floor

    def repetitions(self, target: float) -> int:
        """Seeds needed to reach `target`. Raises Unbounded where they would be too many."""
        if self.floor >= target:
            raise Unbounded(f"{self.terms} exponential terms leave a bound of {self.floor:.0e} at best")
        if self.one >= 1:
            raise Unbounded(f"Theorem 2 says nothing about {self.terms} exponential terms")
        needed = max(1, ceil(log(target - self.floor) / log(self.one)))
        if needed > _MOST_REPETITIONS:
            raise Unbounded(f"{self.terms} exponential terms at the smallest sizes would take {needed} repetitions")
        return needed


def theorem_2(degree: int, terms: int) -> float:
    """8 d k^4 / q + q^(-1/k^2)."""
    return 8 * degree * terms**4 / Q + Q ** (-1 / terms**2)


def earned_bound(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    rng: np.random.Generator,
    by_form: Collection[str] = frozenset(),
    target: float | None = None,
) -> Bound:
    """The bound for testing these block graphs, one after the other, against this program at the sizes they have.

    Opaque functions (silu) count as random functions: a new variable for each argument, and a further chance of error
    where two different arguments collide; those in `by_form` count as what they are made of. Raises Unbounded.

    target: of the bound. Where the program alone has too many terms for it, nothing else is counted, and no bound is
    claimed: a candidate of fewer terms loses nothing but a number.
    """
    if any("sqrt" in op.kind.primitives for ops in (program.ops, *(block.ops for block, _ in kernels)) for op in ops):
        raise Unbounded(NO_ROOTS)  # which would show after all that is below them was counted
    first = _Program(program, rng, by_form)
    if target is not None:
        first.check_alone(target)
    ready = [first]

    def counted() -> Counted:
        own = ready.pop() if ready else _Program(program, rng, by_form)
        return own.forms, *difference(own.results, execute_kernels(kernels, own.inputs, own.forms))

    return bound_of(counted)


def bound_of(counted: Callable[[], Counted]) -> Bound:
    """counted: counts once, with random numbers of its own. Raises Unbounded."""
    terms, degree, atoms, atom_degree, exponent_degree = 1, 1, 0, 0, 0
    for _ in range(_COUNTINGS):
        forms, k, d = counted()
        terms, degree = max(terms, k), max(degree, d, forms.argument_degree)
        exponent_degree = max(exponent_degree, forms.argument_degree)
        atoms, atom_degree = max(atoms, len(forms.atoms)), max(atom_degree, forms.atom_degree)
    _check_degree(max(degree, atom_degree, exponent_degree))
    # Arguments that differ as fractions agree at random inputs with chance (degree of the cross-product) / P at most.
    collisions = atoms * (atoms - 1) / 2 * 2 * atom_degree / P
    # Two different exponents would have to agree in every counting.
    pairs = terms * (terms + 1) / 2
    floor = pairs * (2 * exponent_degree / Q) ** _COUNTINGS if exponent_degree else 0.0
    return Bound(terms, degree, theorem_2(degree, terms) + collisions, floor)


class _Program:
    """A program as it is counted once. Raises Unbounded."""

    def __init__(self, program: TensorProgram, rng: np.random.Generator, by_form: Collection[str]) -> None:
        self.forms = FormArithmetic(rng, by_form)
        self.inputs: Mapping[str, Elements] = {
            tensor.name: self.forms.variables(rng, tensor.shape(program.sizes)) for tensor in program.tensors
        }
        self.results = evaluate_program(program, self.inputs, self.forms)

    def check_alone(self, target: float) -> None:
        """Raises Unbounded where a test of the program against itself would have no bound that small."""
        terms, degree = difference(self.results, self.results)
        _check_degree(degree)
        Bound(terms, degree, theorem_2(degree, terms), 0.0).repetitions(target)


def _check_degree(degree: int) -> None:
    if degree >= Q:
        raise Unbounded(f"polynomials of a degree over {Q} are outside Theorem 2")
