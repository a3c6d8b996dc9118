"""The arguments of a generated call, on as few lines as hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_WIDTH = 90
"""Characters of a line without its indentation: at most 8 more, a comma and a space."""


def argument_lines(arguments: Sequence[str]) -> Iterator[str]:
    """Lines of arguments, each with its comma, without indentation. An argument is never cut."""
    current = ""
    for argument in arguments:
        if current and len(current) + len(argument) > _WIDTH:
            yield current
            current = ""
        current += f"{' ' if current else ''}{argument},"
    if current:
        yield current
