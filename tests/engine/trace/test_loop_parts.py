"""Parts of tensors that a loop walks along: a region of the loop's body reads the part, and is one for all steps."""

from __future__ import annotations

from mugraph.ir.region import Region

from tests.engine.trace.partition import Regions, ins, only, outs


def test_a_step_of_a_recurrence_reads_the_parts_of_its_step(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: a=f32[2, 5, 8], b=f32[2, 5, 8], c=f32[2, 5, 8]
        def scan(a, b, c):
            x, ys = torch.zeros(2, 8), []
            for i in range(a.shape[1]):
                x = a[:, i] * x + b[:, i]
                y = (x * c[:, i, :]).sum(-1)
                ys.append(y)
            return ys
        """)
    )
    assert sorted(ins(region)) == ["a[:, i]", "b[:, i]", "c[:, i, :]", "x"]
    assert outs(region) == ["x", "y"]
    assert not [guard for guard in region.guards if "i" in guard.split()]


def test_a_step_that_computes_with_its_number_is_for_that_number(regions: Regions) -> None:
    found = regions("""
        # mugraph: a=f32[2, 5, 8]
        def f(a):
            x, xs = torch.zeros(2, 8), []
            for i in range(a.shape[1]):
                x = (a[:, i] * x + i).softmax(-1)
                xs.append(x)
            return xs
        """)
    assert any(guard.startswith("i == ") for region in found for guard in region.guards)


def test_a_part_of_what_the_step_computes_is_computed_in_it(regions: Regions) -> None:
    """`a[:, i]` is not what it was when the step began."""
    region = only(
        regions("""
        # mugraph: a=f32[2, 5, 8], w=f32[8, 8]
        def f(a, w):
            xs = []
            for i in range(5):
                a = a @ w
                x = a[:, i].softmax(-1)
                xs.append(x)
            return xs
        """)
    )
    assert ins(region) == ["a", "w"]


def test_a_part_at_a_number_that_no_loop_changes_is_part_of_the_region(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: a=f32[2, 5, 8], w=f32[8, 8]
        def f(a, w, n=3):
            return (a[:, n] @ w).softmax(-1)
        """)
    )
    assert ins(region) == ["a", "w"]
    assert "n == 3" in region.guards


def test_a_part_may_begin_between_whole_words(regions: Regions) -> None:
    """The last of 7 numbers does not begin at a multiple of 16 bytes: the region's kernel reads it at any address."""
    region = only(
        regions("""
        # mugraph: s=f32[4, 8, 8], g=f32[3, 4, 7], v=f32[3, 4, 8, 8]
        def decay(s, g, v):
            for i in range(3):
                s = s * g[i, :, -1, None, None].exp() + v[i]
            return s
        """)
    )
    assert skews(region) == {"s": 0, "g[i, :, -1, None, None]": 2, "v[i]": 0}


def test_a_part_that_begins_at_a_whole_word_in_the_first_step_only(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: b=bf16[2, 5, 9], x=bf16[2, 9]
        def scan(b, x):
            for i in range(4):
                x = torch.tanh(b[:, i] * x)
            return x
        """)
    )
    assert skews(region) == {"b[:, i]": 1, "x": 0}


def skews(region: Region) -> dict[str, int]:
    """How far live-ins begin from a multiple of 16 bytes, in elements."""
    return {named.expression: region.values[named.value].skew for named in region.live_ins}
