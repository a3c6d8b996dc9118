"""Code inside of `with`: its last statement is one like the others, whatever the contexts do when they end."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions, only, outs

INSIDE = """
# mugraph: x=f16[64, 128], w=f16[128]
def scaled(x, w):
    {head}
        y = torch.relu(x + 1)
        y = y * w
        {last}
{after}"""
HEADS = {
    "one": "with torch.no_grad():",
    "two": "with torch.no_grad(), torch.autograd.profiler.record_function('scaled'):",
    "of gradients": "with torch.set_grad_enabled(False):",
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(
    ("last", "after"),
    [("return y.softmax(-1)", ""), ("y = y.softmax(-1)", "    return y\n"), ("y = y.softmax(-1)", "    return y, 3\n")],
)
def test_the_last_statement_inside_is_a_part_of_it(regions: Regions, name: str, last: str, after: str) -> None:
    region = only(regions(INSIDE.format(head=HEADS[name], last=last, after=after)))
    assert region.text.splitlines()[0].strip() == "y = torch.relu(x + 1)"
    assert region.text.splitlines()[-1].strip() == last
    assert outs(region) == ["return" if last.startswith("return") else "y"]


def test_so_it_is_in_contexts_inside_of_others(regions: Regions) -> None:
    found = regions("""
# mugraph: x=f16[64, 128], w=f16[128]
def scaled(x, w):
    with torch.no_grad():
        z = torch.relu(x + 1) * w
        with torch.set_grad_enabled(False):
            y = torch.tanh(x)
            y = y * z
        return torch.exp(y) + z
""")
    assert [[line.strip() for line in region.text.splitlines()] for region in found] == [
        ["z = torch.relu(x + 1) * w"],
        ["y = torch.tanh(x)", "y = y * z"],
        ["torch.exp(y) + z"],
    ]


def test_what_writes_last_is_a_part_as_well(regions: Regions) -> None:
    region = only(
        regions("""
# mugraph: p=f32[64, 128], g=f32[64, 128], m=f32[64, 128]
def step(p, g, m):
    with torch.no_grad():
        m.mul_(0.9).add_(g)
        p.add_(m, alpha=-0.01)
""")
    )
    assert len(region.text.splitlines()) == 2
    assert len(region.stored) == 2


def test_an_exception_inside_leaves_as_it_would(regions: Regions) -> None:
    found = regions("""
def refused(x):
    with torch.no_grad():
        raise ValueError("not this")


# mugraph: x=f16[64, 128]
def scaled(x):
    y = torch.relu(x + 1) * 2
    try:
        refused(y)
    except ValueError:
        y = torch.tanh(y) * y
    return y
""")
    assert found[0].text.strip() == "y = torch.relu(x + 1) * 2"
