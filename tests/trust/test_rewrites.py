"""Right rewrites of right programs are accepted, but for those that no rule here shows, each explained."""

from __future__ import annotations

from tests.trust.rewriting import rewrites

LEAST = 200
MOST = 0.05
"""Share that may be rejected."""


def test_at_most_one_in_twenty_is_rejected() -> None:
    found = list(rewrites(4))
    refused = [one for one in found if one.verdict != "accepted"]
    assert len(found) >= LEAST
    assert not [one for one in refused if one.verdict == "raised"]
    unexplained = [one for one in refused if not explained(one)]
    assert not unexplained
    assert len(refused) <= MOST * len(found), refused
