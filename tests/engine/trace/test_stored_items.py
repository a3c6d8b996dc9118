"""`cache[index] = k`: a call of a region, where the region may run at every call of a loop."""

from __future__ import annotations

import torch
from mugraph.ir.calls import STORES
from mugraph.trace.regions.replay import replay
from mugraph.units.search_units import single_units

from tests.engine.trace.partition import Regions, ins, only, outs, targets

LAYER = """
    # mugraph: x=f32[2, 8], w=f32[8, 8], cache=f32[2, 12, 8]{more}
    def f(x, w, cache{argument}):
        k = x @ w
        cache[:, {place}] = k{rows}
        return torch.einsum("bd,btd->bt", x @ w.T, cache{part})
    """


STEP = """
    # mugraph: x=f32[2, 8], w=f32[8, 8], cache=f32[2, 12, 8], pos={pos}
    def f(x, w, cache, pos):
        k = x @ w
        cache[:, pos] = k
        read = cache[:, : pos + 1]
        y = torch.einsum("bd,btd->bt", k @ w, read)
        return y.softmax(-1)
    """


def step(pos: str) -> str:
    return STEP.format(pos=pos)


def layer(place: str, part: str = "", argument: str = "", more: str = "", rows: str = "") -> str:
    return LAYER.format(place=place, part=part, argument=f", {argument}" if argument else "", more=more, rows=rows)


def test_what_is_read_after_a_write_is_what_was_written(regions: Regions) -> None:
    region = only(regions(layer("3", "[:, :4]")))
    assert ins(region) == ["x", "w", "cache"]
    assert targets(region).count(STORES) == 1
    x, w, cache = (torch.randn(region.values[live.value].shape) for live in region.live_ins)
    before = cache.clone()
    made = replay(region.calls, dict(zip((live.value for live in region.live_ins), (x, w, cache), strict=True)))
    torch.testing.assert_close(cache[:, 3], x @ w)
    assert torch.equal(cache[:, [0, 1, 2, *range(4, 12)]], before[:, [0, 1, 2, *range(4, 12)]])
    torch.testing.assert_close(
        made[region.live_outs[0].value], torch.einsum("bd,btd->bt", x @ w.T, cache[:, :4]), rtol=1e-4, atol=1e-4
    )


def test_places_that_a_tensor_says(regions: Regions) -> None:
    region = only(regions(layer("at", argument="at", more=", at=i64[1]", rows="[:, None]")))
    assert STORES in targets(region)
    assert "at" in ins(region)


def test_a_place_that_is_a_number_of_the_caller_s_ends_a_region(regions: Regions) -> None:
    """It would hold for one place of a loop. The part that is read is read by its length."""
    first, second = regions(step("5"))
    assert (first.text, outs(first)) == ("k = x @ w", ["k"])
    assert second.text.startswith("y = torch.einsum")
    assert ins(second) == ["k", "w", "read"]
    assert not [guard for guard in (*first.guards, *second.guards) if "pos" in guard]


def test_a_position_may_have_a_range(regions: Regions) -> None:
    _, second = regions(step("1..9"))
    assert second.status is None
    assert second.dynamic is not None
    assert second.dynamic.range.name == "pos"


def test_a_view_from_before_a_write_is_not_read_after_it(regions: Regions) -> None:
    for region in regions("""
        # mugraph: x=f32[2, 8], w=f32[8, 8], cache=f32[2, 12, 8]
        def f(x, w, cache):
            k = x @ w
            early = cache[:, :4]
            cache[:, 3] = k
            return torch.einsum("bd,btd->bt", k @ w, early)
        """):
        assert STORES not in targets(region)


def test_two_values_of_a_cache_in_one_region(regions: Regions) -> None:
    """What was there before the write, and what is there after it: no unit computes with both."""
    region = only(
        regions("""
        # mugraph: x=f32[2, 8], w=f32[8, 8], cache=f32[2, 12, 8]
        def f(x, w, cache):
            old = cache.sum(1) @ w
            cache[:, 3] = x @ w
            new = cache.sum(1) @ w
            return old + new
        """)
    )
    write = next(i for i, call in enumerate(region.calls) if call.target == STORES)
    for part in single_units(region):
        positions = [region.calls.index(call) for call in part.calls if call in region.calls]
        assert not (min(positions) < write < max(positions)) or write in positions


def test_other_items_and_augmented_stores_are_in_no_region(regions: Regions) -> None:
    for stored in ("table['k'] = k", "cache[:, 3] += k", "cache[:, 3], n = k, 1"):
        for region in regions(f"""
            # mugraph: x=f32[2, 8], w=f32[8, 8], cache=f32[2, 12, 8]
            def f(x, w, cache, table={{}}):
                k = x @ w
                {stored}
                return torch.einsum("bd,btd->bt", k @ w, cache)
            """):
            assert stored not in region.text


def test_a_buffer_of_zeros_holds_something_else_later(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[2, 8]
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("cache", torch.zeros(6, 8))

            def forward(self, x):
                return x @ self.cache[:4].T
        """)
    )
    assert all(info.triangle is None for info in region.values.values())


def test_what_is_written_to_parts_alone_is_computed_by_a_region(regions: Regions) -> None:
    """There is nothing that a call of a kernel could be bound to."""
    found = regions("""
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(4, 8))

        # mugraph: x=f32[6, 8]
        def forward(self, x):
            print(x.shape)
            self.rows[1:] = self.rows[:-1].clone()
            self.rows.copy_(torch.tanh(x).mean(0))
            return x
    """)
    assert found
    for region in found:
        assert region.live_outs or region.stored
        assert "self.rows[1:] =" not in region.text
