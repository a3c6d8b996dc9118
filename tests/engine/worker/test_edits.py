"""From one text to another by edits, and where a comment with shapes goes. No process."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.source import Source
from mugraph.worker.edits import lines_of, text_edits
from mugraph.worker.shape_comment import NoPlace, with_shapes

_LINES = st.lists(st.sampled_from(["a", "b", "é\U0001f600", "", "\x0c", "\u2028"]), max_size=8)
_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    end = draw(_ENDS)
    return end.join(draw(_LINES)) + draw(st.sampled_from(["", end]))


@given(texts(), texts())
def test_edits_make_the_one_text_of_the_other(before: str, after: str):
    lines = lines_of(before)
    assert "".join(lines) == before

    def offset(line: int, character: int) -> int:
        start = sum(len(one) for one in lines[:line])
        units = (lines[line] if line < len(lines) else "").encode("utf-16-le")[: 2 * character]
        return start + len(units.decode("utf-16-le"))

    text = before
    edits = text_edits(before, after)
    for one, other in pairwise(edits):
        assert one.range.end <= other.range.start
    for edit in reversed(edits):
        start = offset(edit.range.start.line, edit.range.start.character)
        text = text[:start] + edit.new_text + text[offset(edit.range.end.line, edit.range.end.character) :]
    assert text == after
    assert (edits == []) == (before == after)


MODULE = """import torch


@torch.no_grad()
def f(x, w, n: int = 3):
    return x @ w


class Block(torch.nn.Module):
    def forward(self, x):
        return x @ x

    # mugraph: q=f16[1]
    def attend(self, q, k=None):
        return q @ q
"""


@pytest.mark.parametrize(
    ("function", "arguments", "line", "comment"),
    [
        ("f", None, 3, "# mugraph: x=f16[...], w=f16[...]"),
        ("f", {"x": "f16[2, 3]", "w": "f16[3, 4]", "n": "5"}, 3, "# mugraph: x=f16[2, 3], w=f16[3, 4], n=5"),
        ("Block.forward", {"x": "f16[8, 8]"}, 8, "# mugraph: x=f16[8, 8]"),
        ("Block.attend", {"q": "f16[8, 8]"}, 12, "    # mugraph: q=f16[8, 8]"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_comment_stands_where_tracing_reads_it(
    function: str, arguments: dict[str, str] | None, line: int, comment: str, end: str
):
    before = MODULE.replace("\n", end)
    after = with_shapes(before, function, arguments)
    assert lines_of(after)[line] == comment + end
    if arguments is not None:
        found = {entry.function: entry for entry in find_definitions(Source("m.py", after)).entries}
        assert set(found[function].arguments) == set(arguments)
        assert with_shapes(after, function, arguments) == after


def test_what_a_comment_says_already_is_replaced():
    text = "# mugraph: x=f16[1], init(dim=1)\n# mugraph: b=2\nclass A:\n    def forward(self, x): return x\n"
    after = with_shapes(text, "A.forward", {"x": "f16[2]"}, {"dim": "2"})
    assert after == text.replace("# mugraph: x=f16[1], init(dim=1)\n", "# mugraph: x=f16[2], init(dim=2)\n")


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n", "class f: pass\n", ""])
def test_nowhere_to_put_it(text: str):
    with pytest.raises(NoPlace):
        with_shapes(text, "f", None)
