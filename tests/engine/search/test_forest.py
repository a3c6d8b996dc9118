"""Trees of loops from what runs in what, and what knows which result."""

from __future__ import annotations

from mugraph.ir.text.printer import format_loops
from mugraph.search.topologies.forest import forest


def shown(axes: str, inside: dict[str, str], after: dict[str, str]) -> str | None:
    sets = [{axis: set(of.get(axis, "")) for axis in axes} for of in (inside, after)]
    found = forest(axes, *sets)
    return None if found is None else format_loops(found, {})


def test_deep() -> None:
    assert shown("abc", {"b": "a", "c": "ab"}, {}) == "a(b(c))"
    assert shown("abc", {"a": "bc", "b": "c"}, {}) == "c(b(a))"


def test_flat_in_the_order_of_results() -> None:
    assert shown("ab", {}, {}) == "a, b"
    assert shown("ab", {}, {"a": "b"}) == "b, a"
    assert shown("abc", {"b": "a", "c": "a"}, {"b": "c"}) == "a(c, b)"
    assert shown("abc", {"b": "a"}, {"b": "c"}) == "c, a(b)"  # the loop inside needs what runs before the outer one


def test_no_order() -> None:
    assert shown("ab", {"a": "b", "b": "a"}, {}) is None  # each in the other
    assert shown("ab", {"b": "a"}, {"b": "a"}) is None  # an iteration that knows the result of the loop around it
    assert shown("ab", {}, {"a": "b", "b": "a"}) is None
    assert shown("abc", {"c": "ab"}, {}) is None  # a and b are not one in the other
