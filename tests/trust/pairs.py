"""Random pairs of small programs, decided by exact rational arithmetic, or in 50 digits where they have exp or sqrt,
against what the verifier says.

`python -m tests.trust.pairs [--pairs N] [--seconds S] [--seed K]` prints how many were equal and different, accepted
and rejected, and every wrong accept. tests/trust/test_pairs.py runs a few in CI.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mugraph.ir.block import Schedule
from mugraph.verification.verifier import verify_schedule, verify_topology

from tests.trust.expressions import INPUTS, Node, axes, block, drawn, has, program, rewritten, size

DRAWS = 3
_NEAR = mpmath.mpf(10) ** -35
_DIGITS = 50
_MANY_DIGITS = 2000
"""Exponentials of hundreds may cancel, and leave nothing of fifty digits."""
_LARGEST = 40
"""Nodes of an expression."""
_ORDER = ("i", "j")


@dataclass(frozen=True)
class Pair:
    """truth: "equal", "different", or "" where neither has a value at any of the inputs drawn"""

    one: Node
    other: Node
    sizes: dict[str, int]
    truth: str


class Undefined(Exception):
    """A division by zero, or the root of a negative number."""


def pairs(rng: random.Random) -> Iterator[Pair]:
    while True:
        one = drawn(rng, rng.randint(2, 4))
        if not axes(one) or size(one) > _LARGEST:
            continue
        other = one
        for _ in range(rng.randint(1, 4)):
            other = rewritten(rng, other)
        if rng.random() < 0.05:
            other = drawn(rng, rng.randint(2, 4))
        if other == one or axes(other) != axes(one) or size(other) > 2 * _LARGEST:
            continue
        sizes = {"i": rng.randint(2, 4), "j": rng.randint(2, 4)}
        truth = decided(one, other, sizes, rng)
        if truth:
            yield Pair(one, other, sizes, truth)


def decided(one: Node, other: Node, sizes: dict[str, int], rng: random.Random) -> str:
    """At inputs of both signs and at positive ones; where the first has a value, so has to have the second."""
    with mpmath.workdps(_DIGITS):
        return _decided(one, other, sizes, rng)


def _decided(one: Node, other: Node, sizes: dict[str, int], rng: random.Random) -> str:
    exact = not any(has(node, op) for node in (one, other) for op in ("exp", "sqrt"))
    agreed = 0
    for draw in range(2 * DRAWS):
        inputs = {name: _array(rng, [sizes[a] for a in dims], draw % 2 == 0, exact) for name, dims in INPUTS.items()}
        try:
            expected = value(one, inputs, sizes)
        except Undefined:
            continue
        try:
            same = _agree(expected, value(other, inputs, sizes), exact)
            if not same and (exact or not _agree_in_digits(one, other, inputs, sizes)):
                return "different"
        except Undefined:
            return "different"
        agreed += 1
    return "equal" if agreed else ""


def _agree_in_digits(one: Node, other: Node, inputs: dict[str, Any], sizes: dict[str, int]) -> bool:
    """Do they agree at these inputs, with many digits?"""
    with mpmath.workdps(_MANY_DIGITS):
        return _agree(value(one, inputs, sizes), value(other, inputs, sizes), exact=False)


def _agree(one: Any, other: Any, exact: bool) -> bool:
    a, b = np.broadcast_arrays(one, other)
    return all(_same(x, y, exact) for x, y in zip(a.flat, b.flat, strict=True))


def _same(a: Any, b: Any, exact: bool) -> bool:
    return a == b if exact else abs(a - b) <= _NEAR * max(abs(a), abs(b), 1)


def _array(rng: random.Random, shape: list[int], positive: bool, exact: bool) -> Any:
    found = np.empty(shape, object)
    for at in np.ndindex(*shape):
        number = Fraction(rng.randint(1, 997), rng.randint(300, 997))
        number = number if positive or rng.random() < 0.5 else -number
        found[at] = number if exact else mpmath.mpf(number.numerator) / number.denominator
    return found


def value(node: Node, inputs: dict[str, Any], sizes: dict[str, int]) -> Any:
    """Of all axes, in order; of size 1 where it does not vary. Raises Undefined."""
    match node:
        case ("const", number):
            exact = isinstance(next(iter(inputs.values())).flat[0], Fraction)
            found = np.empty((1, 1), object)
            found[0, 0] = Fraction(number) if exact else mpmath.mpf(number)
            return found
        case ("add", a, b):
            return value(a, inputs, sizes) + value(b, inputs, sizes)
        case ("mul", a, b):
            return value(a, inputs, sizes) * value(b, inputs, sizes)
        case ("div", a, b):
            below = value(b, inputs, sizes)
            if any(x == 0 for x in below.flat):
                raise Undefined
            return value(a, inputs, sizes) / below
        case ("sum", a, axis):
            return value(a, inputs, sizes).sum(_ORDER.index(axis), keepdims=True)
        case ("exp", a):
            return _each(mpmath.exp, value(a, inputs, sizes))
        case ("sqrt", a):
            inner = value(a, inputs, sizes)
            if any(x < 0 for x in inner.flat):
                raise Undefined
            return _each(mpmath.sqrt, inner)
        case (name,):
            shape = [sizes[axis] if axis in INPUTS[name] else 1 for axis in _ORDER]
            return inputs[name].reshape(shape)
        case _:
            raise ValueError(node)


def _each(function: Any, array: Any) -> Any:
    found = np.empty(array.shape, object)
    for at in np.ndindex(*array.shape):
        if array[at] > 10**6:
            raise Undefined  # nothing that fits into a number
        found[at] = function(array[at])
    return found


def accepted(pair: Pair, seed: int) -> tuple[bool, str]:
    """By the verifier: of the topology, then of the whole at its own sizes."""
    wanted = program(pair.one, pair.sizes)
    offered = block(pair.other, pair.sizes, wanted)
    verdict = verify_topology(wanted, offered, seed)
    if verdict.passed:
        verdict = verify_schedule(wanted, offered, Schedule(()), seed)
    return verdict.passed, verdict.reason or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    since = time.monotonic()
    wrong = 0
    for number, pair in enumerate(pairs(random.Random(given.seed))):
        if number >= given.pairs or time.monotonic() - since > given.seconds:
            break
        passed, reason = accepted(pair, number)
        counts[pair.truth, "accepted" if passed else "rejected"] += 1
        if passed and pair.truth == "different":
            wrong += 1
            print(f"WRONG ACCEPT {pair.sizes}\n  {pair.one}\n  {pair.other}", flush=True)
        if given.pairs <= 200 and pair.truth == "equal" and not passed:
            print(f"rejected: {reason}\n  {pair.one}\n  {pair.other}")
        if number % 1000 == 999:
            print(f"{number + 1} pairs, {dict(counts)}", file=sys.stderr, flush=True)
    for (truth, verdict), count in sorted(counts.items()):
        print(f"{count:8} {truth}, {verdict}")
    print(f"{sum(counts.values())} pairs, {wrong} wrong accepts, {time.monotonic() - since:.0f} s")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
