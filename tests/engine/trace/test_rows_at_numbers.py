"""Rows of a tensor at a number that is another one at the next call: a region is given the row, whichever it is."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions, ins, only

SCHEDULE = """
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = torch.linspace(1.0, 0.0, 9)
        self.table = torch.linspace(0.0, 1.0, {rows} * {width}).view({rows}, {width})
        self.at = {at}

    # mugraph: x=f32[16, 64], y=f32[16, 64], i=2
    def forward(self, x, y, i):
        self.at += 1
{body}
        return out
"""


def sampler(*body: str, at: int = 3, rows: int = 4, width: int = 64) -> str:
    lines = "\n".join(f"        {line}" for line in body)
    return SCHEDULE.format(at=at, rows=rows, width=width, body=lines)


ROWS = {
    "an attribute": (("z = x.exp() + y", "out = (z * self.levels[self.at]).softmax(-1)"), {"self.levels[self.at]"}),
    "the next one": (("z = x.exp() + y", "out = (z * self.levels[self.at + 1]).softmax(-1)"),
                     {"self.levels[self.at + 1]"}),
    "an argument": (("z = x.exp() + y", "out = (z * self.table[i]).softmax(-1)"), {"self.table[i]"}),
    "from the end": (("z = x.exp() + y", "out = (z * self.table[-i]).softmax(-1)"), {"self.table[-i]"}),
    "a column": (("z = x.exp() + y", "out = (z * self.table[None, :, i].sum()).softmax(-1)"),
                 {"self.table[None, :, i]"}),
    "the last of some": (("z = x.exp() + y", "out = (z * self.table[..., 1:3, i][0]).softmax(-1)"),
                         {"self.table[..., 1:3, i]"}),
    "of an argument": (("z = x.exp()", "out = (z * y[i]).softmax(-1)"), {"y[i]"}),
    "named before": (("row = self.table[i]", "out = (x.exp() * row + y).softmax(-1)"), {"row"}),
    "of two numbers": (("z = x.exp() + y", "out = (z * self.levels[i + self.at]).softmax(-1)"),
                       {"self.levels[i + self.at]"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_row_at_a_number_is_read_as_it_comes(name: str, regions: Regions) -> None:
    body, wanted = ROWS[name]
    region = only(regions(sampler(*body)))
    assert wanted <= {*ins(region)}
    assert {"self.levels", "self.table"}.isdisjoint(ins(region))
    assert not any(guard.startswith(("self.at", "i ==")) for guard in region.guards)


def test_of_the_last_row_as_well(regions: Regions) -> None:
    region = only(regions(sampler("z = x.exp() + y", "out = (z * self.levels[self.at]).softmax(-1)", at=7)))
    assert "self.levels[self.at]" in ins(region)


@pytest.mark.parametrize(("width", "skewed"), [(64, False), (62, True), (65, True)])
def test_rows_that_are_no_whole_words_may_begin_anywhere(width: int, skewed: bool, regions: Regions) -> None:
    body = ("z = x[:, :1].exp() + y[:, 1:2]", "out = (z * self.table[i]).softmax(-1)")
    region = only(regions(sampler(*body, width=width)))
    row = next(one.value for one in region.live_ins if one.expression == "self.table[i]")
    assert bool(region.values[row].skew) == skewed


def test_a_row_of_what_the_program_has_just_computed_begins_a_region(regions: Regions) -> None:
    found = regions(sampler("z = (x @ y.T).exp()", "row = z[i]", "out = (row * 2 + x.sum(-1)).softmax(-1)"))
    assert found
    assert not any("i == 2" in region.guards for region in found)
    assert not any(any("[" in one for one in ins(region)) for region in found)


def test_a_row_of_what_the_program_writes_to_is_read_when_it_is_written(regions: Regions) -> None:
    """At the region's beginning it holds something else."""
    found = regions(sampler("self.table.mul_(x[:4].exp())", "out = (y.exp() * self.table[i]).softmax(-1)"))
    assert found
    for region in found:
        if "self.table[i]" in ins(region):
            assert not any(call.target.endswith("mul_") for call in region.calls)


def test_a_number_that_decides_as_well_is_guarded(regions: Regions) -> None:
    body = ("z = x.exp() + (y if i % 2 else x)", "out = (z * self.table[i]).softmax(-1)")
    region = only(regions(sampler(*body)))
    assert "i == 2" in region.guards


def test_of_a_number_that_is_compared_the_result_is_guarded(regions: Regions) -> None:
    body = ("z = x.exp() + (y if i > 1 else x)", "out = (z * self.table[i]).softmax(-1)")
    region = only(regions(sampler(*body)))
    assert "i > 1" in region.guards
    assert "i == 2" not in region.guards
    assert "self.table[i]" in [one.expression for one in region.live_ins]
