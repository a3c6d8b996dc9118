"""Ranges of sizes in a `# mugraph:` comment: `b=1..64` declares a size that is any of these at run time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mugraph.ir.ranges import SizeRange

_NAMED = re.compile(r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<value>[^,\[\](){}=]*\.\.[^,\[\](){}=]*)")
_RANGE = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
LARGEST = 1 << 20
"""A size above it is no batch."""
MOST = 8
"""Sizes with a range in one comment: each is traced and tested by itself as well."""


class BadRange(Exception):
    """One sentence: what is wrong with a range."""


def largest_of(size: SizeRange) -> int:
    """The largest size, which is the one that is traced and searched."""
    return size.largest


def is_range(text: str) -> bool:
    """Whether a value is a range of sizes: "1..64"."""
    return _RANGE.fullmatch(text) is not None


def without_ranges(text: str, pick: Callable[[SizeRange], int] = largest_of) -> tuple[str, Mapping[str, SizeRange]]:
    """A comment's text with one size picked from each range, and the ranges by name. Raises BadRange."""
    found: dict[str, SizeRange] = {}

    def one(match: re.Match[str]) -> str:
        size = _range(match["name"], match["value"].strip())
        if len(re.findall(rf"(?<![\w.]){size.name}\s*=(?!=)", text)) > 1:
            raise BadRange(f"the size “{size.name}” is given twice; keep one of them")
        found[size.name] = size
        return f"{size.name}={pick(size)}"

    plain = _NAMED.sub(one, text)
    if len(found) > MOST:
        names = ", ".join(f"“{name}”" for name in found)
        raise BadRange(f"the sizes {names} have ranges; {MOST} of them may, so give the others as numbers")
    return plain, found


def _range(name: str, text: str) -> SizeRange:
    ends = _RANGE.fullmatch(text)
    if ends is None:
        raise BadRange(f"“{name}={text}” is no range of sizes; write both ends, like “{name}=1..64”")
    least, largest = int(ends[1]), int(ends[2])
    if least < 1:
        raise BadRange(f"the range “{name}={text}” begins at {least}; a size is at least 1")
    if least > largest:
        raise BadRange(f"the range “{name}={text}” is reversed; write “{name}={largest}..{least}”")
    if least == largest:
        raise BadRange(f"the range “{name}={text}” holds one size; write “{name}={least}”")
    if largest > LARGEST:
        raise BadRange(f"the range “{name}={text}” ends at {largest}; {LARGEST} is the most")
    return SizeRange(name, least, largest)
