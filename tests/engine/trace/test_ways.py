"""Code that one run executes in several ways: a region for each that has weights, or a resolution, of its own."""

from __future__ import annotations

import pytest

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


def test_blocks_of_several_widths_have_a_region_each(regions: Regions) -> None:
    found = [region for region in regions(BLOCKS.replace("LAST", "True")) if region.function == "Block.forward"]
    widths = [(region.times, region.values[region.live_ins[0].value].shape[-1]) for region in found]
    assert widths == [(3, 8), (1, 16)]
    assert found[0].range == found[1].range
    assert targets(found[0]) == targets(found[1])


def test_they_have_one_place(regions: Regions) -> None:
    """A block that adds no residual is alone done before the branch. Its region is cut as those of the others."""
    found = [region for region in regions(BLOCKS.replace("LAST", "False")) if region.function == "Block.forward"]
    assert {(region.range, region.unit) for region in found} == {(found[0].range, "statements")}
    assert found[0].text.endswith("y = y + x")
    assert [(region.times, "Tensor.add" in targets(region)) for region in found] == [(3, True), (1, False)]
    guards = [guard for region in found for guard in region.guards if "self.residual" in guard]
    assert guards == ["self.residual is True", "self.residual is False"]


def test_a_head_at_several_resolutions(regions: Regions) -> None:
    found = regions("""
        log = []

        def head(x, w):
            y = F.silu(x @ w) @ w
            log.append(y)
            return y

        # mugraph: a=f32[64, 8], w=f32[8, 8]
        def f(a, w):
            return [head(a[: 64 >> at], w) for at in range(4)]
        """)
    rows = [region.values[region.live_ins[0].value].shape[0] for region in found if region.function == "head"]
    assert rows == [64, 32, 16, 8]


def test_what_grows_from_step_to_step_has_no_region_for_each(regions: Regions) -> None:
    """One reads the argument itself, and the first of the others stands for them."""
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
    assert [region.values[region.live_ins[0].value].shape for region in found] == [(1, 8), (2, 8)]


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


DILATED = """
    class Stack(nn.Module):
        def __init__(self, dilations=DILATIONS):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(8, 8, 3, padding=d, dilation=d) for d in dilations)
            self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in dilations)

        # mugraph: x=f32[2, 8, 32]
        def forward(self, x):
            for at in range(len(self.convs)):
                y = torch.tanh(self.convs[at](x))
                x = x + self.norms[at](y.transpose(1, 2)).transpose(1, 2)
            return x
    """


@pytest.mark.parametrize(("dilations", "times"), [((1, 2, 4), [1, 1, 1]), ((1, 3, 1, 3, 1), [3, 2]), ((2, 2), [2])])
def test_layers_of_several_dilations_that_a_loop_counts(regions: Regions, dilations, times) -> None:
    found = regions(DILATED.replace("DILATIONS", str(dilations)))
    assert [region.times for region in found] == times
    assert len({region.range for region in found}) == 1
