"""Right rewrites of right programs are accepted; what no rule of the verifier shows is a small share, and explained."""

from __future__ import annotations

import os
from collections import Counter

from tests.trust.rewrites import REWRITES
from tests.trust.rewriting import PROGRAMS, rewrites

LEAST = 200
MOST = 0.05
"""Share that may be rejected."""
EXPLAINED = {
    "maximum_shifted": "max(a + 1, b + 1) − 1 of a product scaled by its largest: at the sizes tested the maximum is"
    " the same one of its values each time, and what was never seen to be the other is not accepted",
    "largest": "max(2x)/2, max(x + 1) − 1 there: the same",
}
"""Kind of rewrite -> why the verifier need not show it."""


def test_at_most_one_in_twenty_is_rejected() -> None:
    """With MUGRAPH_TRUST=all of more programs each."""
    found = list(rewrites(PROGRAMS if os.environ.get("MUGRAPH_TRUST") == "all" else 4))
    kinds = Counter(one.kind for one in found)
    assert len(found) >= LEAST
    assert all(kinds[kind] for kind in REWRITES)
    refused = [one for one in found if one.verdict != "accepted"]
    assert not [one for one in refused if one.verdict == "raised" or one.kind not in EXPLAINED]
    assert len(refused) <= MOST * len(found), refused
