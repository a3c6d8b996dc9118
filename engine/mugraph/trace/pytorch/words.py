"""Long lists of names, kept as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
