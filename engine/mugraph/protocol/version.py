"""Which protocol this is."""

from __future__ import annotations

PROTOCOL = 2
"""Raised with every change that the other side would not understand."""
