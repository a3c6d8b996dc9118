"""Methods of Python's containers that write to them."""

from __future__ import annotations

from mugraph.trace.pytorch.words import words

CHANGE_WHAT_IS_IN = words("append extend insert pop update setdefault remove clear add popitem discard")
WRITES = CHANGE_WHAT_IS_IN | words("reverse sort")
