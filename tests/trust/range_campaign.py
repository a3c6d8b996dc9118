"""Mutants of kernels for a size in a range: what is true of each, at all sizes, and which of the two checks rejects it,
the tests at some sizes or the proof for all of them.

`python -m tests.trust.range_campaign [--json FILE] [--each N] [--two] [--code] [KERNELS]` runs many of them (minutes)
and prints tables; with `--two` those of kernels with two ranges alone, with `--code` of kernels of code alone.
tests/trust/test_range_mutants.py runs a part in CI. What is true is found out by running the text over the fields at
every size, of two ranges at 120 pairs of sizes; only what the proof says is in question here.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain, product
from pathlib import Path

from mugraph.sizes.possible import can_be
from mugraph.sizes.proved import varying_of
from mugraph.sizes.table import at_sizes, sizes_at, tested_sizes, words_of
from mugraph.sizes.text import checked_steps
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges

from tests.trust.range_mutations import mutants
from tests.trust.range_pool import PAIRS, WITH_ROWS, Ranged, names, ranged
from tests.trust.range_traced import CODE, traced
from tests.trust.text_mutations import Mutant

EACH = 4
"""Mutants of one kind of one kernel."""
SEED = 15
POINTS = 120
"""Sizes at which it is looked for what is true of a mutant, at most."""


@dataclass(frozen=True)
class Outcome:
    """wrong_at: a size at which it is wrong, if there is one. tests, proof: why they reject it; "" where they do not"""

    kernel: str
    axis: str
    kind: str
    what: str
    wrong_at: str | None
    tests: str
    proof: str

    @property
    def word(self) -> str:
        how = "by the tests" if self.tests else "by the proof" if self.proof else "by none"
        return f"{'wrong' if self.wrong_at is not None else 'right'}, rejected {how}"


def pairs() -> Iterator[tuple[str, str, Ranged]]:
    """Kernels with two ranges."""
    for name, *axes in PAIRS:
        found = ranged(name, *axes)
        if found is not None:
            yield name, " and ".join(axes), found


def pool(*, rows: bool = True) -> Iterator[tuple[str, str, Ranged]]:
    for name, axis in names():
        found = ranged(name, axis)
        if found is not None:
            yield name, axis, found
        with_rows = ranged(name, axis, rows=True) if rows and name in WITH_ROWS else None
        if with_rows is not None and any(len(part.launches) > 1 for part in with_rows.source.kernels):
            yield f"{name} with rows", axis, with_rows


def from_code() -> Iterator[tuple[str, str, Ranged]]:
    """Kernels of code with a range."""
    for name in CODE:
        one = Ranged(*traced(name))
        yield name, " and ".join(one.program.least), one


def variables(one: Ranged) -> tuple[list[str], list[str]]:
    """Of the launcher, and of the kernels, that are sizes."""
    sizes = re.findall(r"^ *(\w+) = \w+\.(?:numel\(|shape\[)", one.source.launcher, re.MULTILINE)
    return sizes, sorted({name for part in one.source.kernels for name in part.arguments})


def chosen(name: str, axis: str, one: Ranged, each: int) -> Iterator[Mutant]:
    tested = checked_steps(one.program, one.source)
    for kind, found in mutants(one.source.standalone(), tested, *variables(one)).items():
        rng = random.Random(f"{SEED}/{name}/{axis}/{kind}")
        yield from rng.sample(found, min(each, len(found)))


def at(one: Ranged, text: str, sizes: Mapping[str, int]) -> str:
    """What is wrong with a text at these sizes."""
    small, _ = at_sizes(one.program, [], sizes)
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (one.source.inputs, one.source.outputs))
    found = check_text(small, text, one.launcher, inputs, outputs, seed=SEED, memory_alone=True)
    return "" if found.passed else found.reason or "wrong"


def by_tests(one: Ranged, text: str) -> tuple[str, str]:
    """Why the tests reject a text, and at which sizes."""
    steps = (sizes_at(one.program, step) for step in checked_steps(one.program, one.source))
    for sizes in (*tested_sizes(one.program), *steps):
        reason = at(one, text, sizes)
        if reason:
            return reason, words_of(one.program, sizes)
    return "", ""


def proved(one: Ranged, text: str) -> str:
    found = check_ranges(one.program, one.source, varying_of(one.program), text)
    return "" if found.passed else found.reason or "not proved"


def every_size(one: Ranged) -> list[Mapping[str, int]]:
    """All sizes of the range in a random order; of several ranges some. Those that cannot be, as where masks hide all
    of a row, have no result."""
    varying = one.program.least
    points = product(*(range(least, one.program.sizes[axis] + 1) for axis, least in varying.items()))
    every = [{**one.program.sizes, **dict(zip(varying, point, strict=True))} for point in points]
    every = [sizes for sizes in every if can_be(one.program, sizes)]
    return random.Random(SEED).sample(every, min(POINTS, len(every)))


def outcome(name: str, axis: str, one: Ranged, mutant: Mutant) -> Outcome:
    """What the tests reject is wrong at one of theirs; of the rest other sizes are looked at, until one is wrong."""
    tests, wrong = by_tests(one, mutant.text)
    proof = proved(one, mutant.text)
    if not tests:
        found = (sizes for sizes in every_size(one) if at(one, mutant.text, sizes))
        wrong = next((words_of(one.program, sizes) for sizes in found), "")
    return Outcome(name, axis, mutant.kind, mutant.what, wrong or None, tests, proof)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--two", action="store_true", help="kernels with two ranges alone")
    parser.add_argument("--code", action="store_true", help="kernels of code alone")
    arguments = parser.parse_args()
    found: list[Outcome] = []
    every = from_code() if arguments.code else pairs() if arguments.two else chain(pool(), pairs(), from_code())
    for name, axis, one in every:
        if arguments.kernels and name not in arguments.kernels:
            continue
        for mutant in chosen(name, axis, one, arguments.each):
            found.append(outcome(name, axis, one, mutant))
        print(f"{name} along {axis}: {len(found)}", file=sys.stderr, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    _tables(found)


def _tables(found: list[Outcome]) -> None:
    kernels = {(one.kernel, one.axis) for one in found}
    print(f"{len(found)} mutants of {len(kernels)} kernels with a range")
    for word in sorted({one.word for one in found}):
        own = Counter(one.kind for one in found if one.word == word)
        print(f"{sum(own.values()):6} {word:28} " + ", ".join(f"{kind} {n}" for kind, n in sorted(own.items())))
    hidden = [one for one in found if one.wrong_at is not None and not one.tests]
    caught = sum(1 for one in hidden if one.proof)
    print(f"{len(hidden)} are right at the tested sizes and wrong at another: {caught} rejected by the proof")
    both = sum(1 for one in found if one.tests and one.proof)
    print(f"{sum(1 for one in found if one.tests)} are rejected by the tests, {both} of them by the proof as well")
    for one in found:
        if one.wrong_at is not None and not one.tests and not one.proof:
            print(f"  ACCEPTED: {one.kernel} along {one.axis}: {one.kind}: {one.what}: wrong at {one.wrong_at}")


if __name__ == "__main__":
    main()
