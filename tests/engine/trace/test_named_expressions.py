"""Names that expressions bind (`x := ...`) inside of what a region replaces."""

from __future__ import annotations

import ast

from mugraph.trace.syntax.binding import bound_before_read, surely_read

from tests.engine.trace.partition import Regions, outs


def test_a_name_that_is_bound_first_is_not_read_from_before(regions: Regions) -> None:
    """In the second iteration it has a value. A test that asks for it would raise in the first one."""
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def steps(x, w):
            for _ in range(3):
                half = (z := torch.tanh(x @ w)) + z.mean(-1, keepdim=True)
                x = torch.sigmoid(half) * x
            return x, z
        """)
    assert found
    for region in found:
        assert "z" not in {named.expression for named in region.live_ins}
        assert not any(guard.startswith("z") or "(z" in guard for guard in region.guards)


def test_an_expression_that_binds_a_name_for_others_stays(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[4, 8], y=f32[4, 8]
        def mixed(x, y):
            print("before")
            y += torch.sigmoid((kept := torch.tanh(x)) * kept)
            print("after")
            return kept, y
        """)
    assert all("kept :=" not in region.text or "kept" in outs(region) for region in found)


def test_an_expression_may_bind_a_name_for_itself(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[4, 8], y=f32[4, 8]
        def mixed(x, y):
            out = []
            out.append(torch.sigmoid((own := torch.tanh(x)) * own + y))
            print(len(out))
            return out
        """)
    assert any("own :=" in region.text for region in found)


def test_what_is_bound_before_it_is_read() -> None:
    def bound(text: str) -> set[str]:
        return bound_before_read(ast.parse(text).body[0])

    assert bound("y = (z := f(x)) + z") == {"z"}
    assert bound("y = z + (z := f(x))") == set()
    assert bound("y = (z := f(x)) if x else z") == set()
    assert bound("y = x and (z := f(x)) and z") == set()
    assert bound("y = [z for i in x if (z := i)]") == set()
    assert bound("a[(z := 1)] = z") == set()


def test_what_a_run_binds_is_not_read_from_before_it() -> None:
    def read(text: str) -> set[str]:
        return surely_read(ast.parse(text).body)

    assert read("y = f(x)\nz = y + w") == {"f", "x", "w"}
    assert read("y = (z := f(x)) + z") == {"f", "x"}
    assert read("if c:\n    y = x\nz = y") == {"c"}
