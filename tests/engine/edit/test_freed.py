"""A region lets go of a tensor after the last line that reads it."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st
from mugraph.edit.module.freed import with_deletions


def test_after_the_last_use_where_a_later_line_computes_something() -> None:
    lines = [
        '"""Said."""',
        "a, b = _one(x)",
        "c = torch.mul(",
        "    a, b,",
        ")",
        "part = weight[1:]",
        "a = torch.exp(c)",
        "y, z = _two(a, part)",
        "return torch.exp(y)",
    ]
    assert with_deletions(lines, {"x", "weight", "part"}) == [
        *lines[:5],
        "del b",
        *lines[5:7],
        "del c",
        lines[7],
        "del a, z",
        lines[8],
    ]


def test_nothing_is_deleted_before_lines_that_compute_nothing() -> None:
    lines = ["a = _one(x)", "b = _two(a)", "return b"]
    assert with_deletions(lines, {"x"}) == lines


NAMES = st.sampled_from("abcdef")


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), min_size=1, max_size=12), NAMES)
def test_nothing_is_read_after_it_is_deleted(steps: list[tuple[str, list[str]]], kept: str) -> None:
    """By running the lines with and without: on what is defined, both are the same."""
    lines: list[str] = []
    known = {"x"}
    for name, reads in steps:
        given_ = [one for one in reads if one in known] or ["x"]
        lines.append(f"{name} = made({', '.join(given_)})")
        known.add(name)
    lines.append(f"return made({steps[-1][0]})")
    changed = with_deletions(lines, {"x", kept})
    assert [line for line in changed if not line.startswith("del ")] == lines
    results: list[object] = []
    for body in (lines, changed):
        space: dict[str, object] = {"made": lambda *parts: ("made", *parts)}
        exec("\n".join(["def run(x):", *(f"    {line}" for line in body)]), space)
        run = space["run"]
        assert callable(run)
        results.append(run("x"))
    assert results[0] == results[1]
    deleted = {
        node.id for node in ast.walk(ast.parse("\n".join(changed))) if isinstance(getattr(node, "ctx", None), ast.Del)
    }
    assert kept not in deleted
