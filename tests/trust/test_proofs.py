"""Nothing wrong is proved; most of what is right is."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from mugraph.ir.json import FormatError, mugraph_from_json
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.spec import check_mugraph
from mugraph.verification.document import PASSES, verify_document
from mugraph.verification.proof import prove
from mugraph.verification.sizes import grid_axes

from tests.trust.campaign import SEED, cases, mutant, program_of
from tests.trust.expressions import block, program
from tests.trust.judge import judge
from tests.trust.pairs import pairs
from tests.trust.pool import entry, names

MUTANTS, PAIRS = 120, 150

UNPROVED = {
    ("cosine_similarity", 5): "do not show",  # sqrt(a) sqrt(b) = sqrt(a b), of sums that are multiplied out
    ("qk_norm_attention", 2): "do not show",
    ("pooled", 2): "over 2000 terms",
    ("pooled", 3): "over 2000 terms",
    ("pooled", 4): "over 2000 terms",
}
"""Right graphs for which no proof is found, and why."""


@pytest.mark.parametrize("name", names())
def test_right_graphs_are_proved(name: str) -> None:
    graphs = entry(name).graphs
    for number, verdict in enumerate(verify_document(program_of(name), list(map(mugraph_from_json, graphs)), seed=1)):
        assert verdict.passed
        assert verdict.proof is not None
        reason = UNPROVED.get((name, number))
        assert verdict.proof.proved == (reason is None), verdict.proof
        assert (reason or "") in verdict.proof.note


def test_no_wrong_mutant_is_proved() -> None:
    chosen = list(cases())
    random.Random(f"{SEED}/proofs").shuffle(chosen)
    wrong = 0
    for case in chosen[:MUTANTS]:
        what, changed = mutant(case)
        try:
            (verdict,) = verify_document(program_of(case.program), [mugraph_from_json(changed)], seed=1)
        except FormatError:
            continue
        if verdict.proof is None:
            assert not verdict.passed
            wrong += 1
            continue
        assert not judge(entry(case.program), changed).wrong or not verdict.proof.proved, (case, what)
    assert wrong > MUTANTS / 4


def test_pairs_of_expressions_are_proved_where_they_are_equal() -> None:
    found = [
        (pair.truth, prove(wanted, [(block(pair.other, pair.sizes, wanted), None)]).proved)
        for pair in islice(pairs(random.Random(17)), PAIRS)
        for wanted in [program(pair.one, pair.sizes)]
    ]
    assert ("different", True) not in found
    equal = [proved for truth, proved in found if truth == "equal"]
    assert len(equal) > 30
    assert sum(equal) > 0.95 * len(equal)


@pytest.mark.parametrize("kind", ["mask", "mask_ignored"])
def test_no_other_mask_is_proved(kind: str) -> None:
    """Two masks may become one at small sizes. The prover alone, of graphs that the verifier would not pass on."""
    tried = 0
    for case in cases(["sliding_window", "causal_attention"]):
        if case.kind != kind:
            continue
        _, changed = mutant(case)
        try:
            graph = mugraph_from_json(changed)
            if check_mugraph(graph, passes=PASSES, for_codegen=False):
                continue
        except FormatError:
            continue
        kernels = [(kernel.block, kernel.schedule) for kernel in graph.kernels if isinstance(kernel, GraphKernel)]
        found = prove(program_of(case.program), [(block, grid_axes(block)) for block, _ in kernels])
        tried += 1
        assert not found.proved or not judge(entry(case.program), changed).wrong, case
    assert tried
