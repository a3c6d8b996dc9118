"""Long lines of a kernel's text are broken between terms and arguments, never inside a string."""

from __future__ import annotations

import ast

import pytest
from mugraph.codegen.tile.text import WIDTH, Assign, Expr, Line, Printer, Region, Value

LONG = "mov.b32 $0, $1; (and) * then + more - still & yet = again, " * 2
CALL = f'tl.inline_asm_elementwise("{LONG}", "=r,r", [a_long_name_of_a_tile, another_long_name], dtype=tl.float32)'
SUM = f'first(a_name_that_is_long) + second("{LONG}") + third(\'a " b, c + d\', another_name_that_is_long)'


def printed(text: str, target: str = "") -> list[str]:
    region = Region()
    item = Line("", Expr((text,)))
    if target:
        value = Value(target, (), "f32", {}, region, Expr((text,)), named=True)
        return Printer().render([Assign(value)], 0)
    return Printer().render([item], 0)


@pytest.mark.parametrize("text", [CALL, SUM, f'tl.static_print("{LONG}", x, y)'])
@pytest.mark.parametrize("target", ["", "found"])
def test_strings_stay_whole(text: str, target: str) -> None:
    lines = printed(text, target)
    assert len(text) > WIDTH
    assert ast.dump(ast.parse("\n".join(lines))) == ast.dump(ast.parse(f"{target} = {text}" if target else text))


def test_a_broken_line_is_broken_where_it_was() -> None:
    terms = [f"a_name_that_is_rather_long_{number}" for number in range(8)]
    assert printed(" + ".join(terms), "total")[1:-1] == [
        f"    {'+ ' if number else ''}{term}" for number, term in enumerate(terms)
    ]
