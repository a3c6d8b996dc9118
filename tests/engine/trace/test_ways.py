"""Code that one run executes in several ways: the region is of the way that is executed most."""

from __future__ import annotations

from tests.engine.trace.partition import Regions, only, targets

BLOCKS = """
    log = []

    class Block(nn.Module):
        def __init__(self, width, residual):
            super().__init__()
            self.up, self.residual = nn.Linear(width, 2 * width), residual
            self.down = nn.Linear(2 * width, width)

        def forward(self, x):
            y = self.down(F.silu(self.up(x)))
            if self.residual:
                y = y + x
            log.append(y)
            return y

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(8, True) for _ in range(3))
            self.last = Block(16, LAST)

        # mugraph: x=f32[4, 8]
        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.last(torch.cat((x, x), dim=-1))
    """


def test_of_blocks_of_several_widths_that_which_is_executed_most(regions: Regions) -> None:
    for last in ("True", "False"):
        region = only([one for one in regions(BLOCKS.replace("LAST", last)) if one.function == "Block.forward"])
        assert (region.times, region.values[region.live_ins[0].value].shape[-1]) == (3, 8)
        assert region.text.endswith("y = y + x")
        assert "Tensor.add" in targets(region)


def test_what_grows_from_step_to_step_has_one_region(regions: Regions) -> None:
    found = regions("""
        log = []

        # mugraph: x=f32[1, 8], w=f32[8, 8]
        def f(x, w):
            cache = x
            for _ in range(12):
                y = (cache @ w).softmax(-1)
                log.append(y)
                cache = torch.cat((cache, x))
            return y
        """)
    assert [region.values[region.live_ins[0].value].shape for region in found] == [(1, 8)]


def test_a_number_that_a_caller_counts_makes_no_way(regions: Regions) -> None:
    found = regions("""
        log = []

        def layer(x, w, index):
            y = (x @ w * (index + 1)).softmax(-1)
            log.append(y)
            return y

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            for index in range(3):
                x = layer(x, w, index)
            return x
        """)
    assert [region.function for region in found] == ["layer"]
    assert "index == 0" in only(found).guards
