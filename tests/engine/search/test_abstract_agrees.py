"""The decision procedure against two others: rewriting by the axioms, and z3 with the axioms."""

from __future__ import annotations

import random
import time
from statistics import mean, median

from mugraph.search.algebra.abstract import Algebra

from tests.engine.search.plain_expressions import Expr, random_expr, rewrite_somewhere
from tests.engine.search.z3_axioms import Axioms

REWRITTEN = 20_000
PAIRS = 1_000
EFFORT = 100_000
"""Of z3 on one pair: about a tenth of a second."""


def test_rewritten_expressions_share_the_normal_form_and_keep_their_subterms() -> None:
    rng, algebra = random.Random(1), Algebra()
    changed = 0
    for _ in range(REWRITTEN):
        e = random_expr(rng, 4)
        other = e
        for _ in range(4):
            other = rewrite_somewhere(rng, other)
        changed += other != e
        assert e.nf(algebra) == other.nf(algebra), (e, other)
        # A_sub: a subterm of either is a subexpression of both.
        term = rng.choice([*e.subterms(), *other.subterms()])
        assert algebra.sub(term.nf(algebra), e.nf(algebra)), (term, e)
        assert algebra.sub(term.nf(algebra), other.nf(algebra)), (term, other)
    print(f"\n{REWRITTEN:,} expressions, {changed:,} of them changed by the axioms: no disagreement")
    assert changed > REWRITTEN / 3


def generated_pairs(rng: random.Random, count: int) -> list[tuple[Expr, Expr]]:
    """No two alike: a third of the parts stand in the whole, a third in a rewritten whole, a third are random."""
    found: dict[tuple[Expr, Expr], None] = {}
    while len(found) < count:
        whole = random_expr(rng, 3)
        rewritten = rewrite_somewhere(rng, rewrite_somewhere(rng, whole))
        parts = (rng.choice(whole.subterms()), rng.choice(rewritten.subterms()), random_expr(rng, 2))
        found[parts[len(found) % 3], whole] = None
    return list(found)


def test_agrees_with_z3_wherever_it_answers() -> None:
    axioms = Axioms(EFFORT)
    cold: list[float] = []
    known: list[float] = []
    asked: list[float] = []
    entailed = answered = proved = 0
    for part, whole in generated_pairs(random.Random(3), PAIRS):
        algebra = Algebra()
        a, b = part.nf(algebra), whole.nf(algebra)
        times = [time.perf_counter()]
        ours = algebra.sub(a, b)
        times.append(time.perf_counter())
        algebra.sub(a, b)
        times.append(time.perf_counter())
        theirs = axioms.entail(part, whole)
        times.append(time.perf_counter())
        for spent, start, end in zip((cold, known, asked), times, times[1:], strict=False):
            spent.append(1e6 * (end - start))
        entailed += ours
        answered += theirs is not None
        proved += theirs is True
        assert theirs is None or ours == theirs, (part, whole)
    print(
        f"\n{PAIRS:,} pairs: the normal form says yes to {entailed}, z3 proves {proved} and answers {answered}: no"
        f" disagreement. Microseconds per query: normal form {median(cold):.1f} (mean {mean(cold):.1f}), asked again"
        f" {median(known):.2f}; z3 {median(asked):,.0f} (mean {mean(asked):,.0f}, at most {max(asked) / 1e3:.0f} ms)"
    )
    assert proved > PAIRS / 3
    assert proved > 0.9 * entailed
    assert median(cold) < 200
