"""The text store against two references: pygls's own documents, and splicing of UTF-16 code units."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, Range, TextDocumentContentChangePartial
from mugraph_server.documents.marks import difference, moved, stretched
from mugraph_server.documents.text import Text, from_utf16, split_lines, utf16_length
from pygls.workspace import TextDocument

from tests.server.support.edits import applied

_ALPHABET = ["a", "b", " ", "\n", "\r\n", "\r", "é", "μ", "𝄞", "👩‍🔬", "\x0c", "\u2028", "\t", "x = 1\n"]
_TEXTS = st.lists(st.sampled_from(_ALPHABET), max_size=30).map("".join)
_PLACES = st.tuples(st.integers(0, 12), st.integers(0, 12))


def _json(span: Range) -> object:
    return {
        "start": {"line": span.start.line, "character": span.start.character},
        "end": {"line": span.end.line, "character": span.end.character},
    }


def _range(one: tuple[int, int], other: tuple[int, int]) -> Range:
    (a, b), (c, d) = sorted((one, other))
    return Range(Position(a, b), Position(c, d))


@given(_TEXTS, st.lists(st.tuples(_PLACES, _PLACES, _TEXTS), max_size=6))
def test_edits_at_any_position_leave_whole_lines(
    before: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    """Wrong positions too: past the end of a line, of the text, inside a surrogate pair, the wrong way round."""
    text = Text(before)
    reference = before
    for one, other, new in edits:
        understood = text.replace(_range(one, other), new)
        reference = applied(reference, [{"range": _json(understood), "newText": new}])
        assert str(text) == reference
        assert text.lines == split_lines(reference)


def test_ten_thousand_edits_as_an_editor_makes_them() -> None:
    """Right positions, compared with what the client holds after each."""
    chance = random.Random(7)
    client = "import torch\n\ndef f(x):\r\n    return x  # μ 𝄞\n"
    text = Text(client)
    for _ in range(10_000):
        lines = split_lines(client)
        if len(client) > 2_000:
            client = client[:500]
            text.assign(client)
            continue

        def place(lines: list[str] = lines) -> tuple[int, int]:
            line = chance.randrange(len(lines))
            content = lines[line].rstrip("\r\n")
            return line, utf16_length(content[: chance.randint(0, len(content))])

        span = _range(place(), place())
        new = "".join(chance.choices(_ALPHABET, k=chance.randint(0, 4)))
        client = applied(client, [{"range": _json(span), "newText": new}])
        text.replace(span, new)
        assert str(text) == client


@given(st.lists(st.sampled_from(["a", "é", "𝄞", "\n"]), max_size=20).map("".join), _PLACES, _PLACES, _TEXTS)
def test_as_pygls_understands_the_same_edit(
    before: str, one: tuple[int, int], other: tuple[int, int], new: str
) -> None:
    """Where both follow the protocol: \\n alone ends lines, positions are of whole characters."""
    text, span = Text(before), _range(one, other)
    places = _understood(text, span)
    theirs = TextDocument("file:///a.py", before, version=1)
    theirs.apply_change(TextDocumentContentChangePartial(places, new))
    text.replace(span, new)
    assert str(text) == theirs.source


@pytest.mark.parametrize(
    ("line", "character", "index"),
    [("a𝄞b", 0, 0), ("a𝄞b", 1, 1), ("a𝄞b", 2, 1), ("a𝄞b", 3, 2), ("a𝄞b", 9, 3), ("abc", -1, 0), ("", 5, 0)],
)
def test_utf16_columns(line: str, character: int, index: int) -> None:
    assert from_utf16(line, character) == index


@given(_TEXTS, _TEXTS)
def test_the_difference_makes_one_of_the_other(before: str, after: str) -> None:
    edit = difference(before, after)
    if edit is None:
        assert before == after
        return
    text = Text(before)
    text.replace(*edit)
    assert str(text) == after


@given(_TEXTS, _PLACES, _PLACES, _PLACES, _PLACES, _TEXTS)
def test_a_mark_holds_the_same_text_after_an_edit_beside_it(
    before: str, one: tuple[int, int], other: tuple[int, int], first: tuple[int, int], last: tuple[int, int], new: str
) -> None:
    before, new = before.replace("\r", ""), new.replace("\r", "")  # an edit may join \r and \n into one line end
    text = Text(before)
    mark = _understood(text, _range(one, other))
    marked = text.slice(mark)
    understood = text.replace(_range(first, last), new)
    after = moved(mark, understood, new)
    if after is not None:
        assert text.slice(after) == marked
    else:
        assert new in text.slice(stretched(mark, understood, new))


def _understood(text: Text, span: Range) -> Range:
    found = [text.index(position) for position in (span.start, span.end)]
    return Range(*(Position(line, utf16_length(text.lines[line][:column])) for line, column in found))
