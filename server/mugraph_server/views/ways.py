"""Regions of the same code, each for other calls of its function: what is done is done with all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState


def same_code(file: FileState, mark: Mark) -> list[Mark]:
    """The marks of this code in the file's order, this one among them."""
    function, place = mark.region.function, (mark.range, mark.head)
    return [one for one in file.marks if one.region.function == function and (one.range, one.head) == place]


def offered(file: FileState, mark: Mark) -> list[Mark]:
    """Of this code, those that can be written now."""
    return [one for one in same_code(file, mark) if file.state(one) == "improved" and one.region.applicable]


def with_others(file: FileState, keys: Sequence[str]) -> list[str]:
    """Keys of regions, with those that can be written of the same code."""
    marks = [mark for mark in file.marks if mark.key in keys]
    return list(dict.fromkeys([*keys, *(one.key for mark in marks for one in offered(file, mark))]))
