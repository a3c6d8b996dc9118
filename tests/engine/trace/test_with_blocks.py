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
        with torch.enable_grad():
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


ACROSS = """
# mugraph: x=f32[64, 128], w=f32[128]
{decorator}def scaled(x, w):
    y = torch.tanh(x) * w
    with {context}:
        t = torch.softmax(y, dim=-1) * w
        t = t * t
    return torch.exp(y) + t
"""
TURN_OFF = ("torch.no_grad()", "torch.set_grad_enabled(False)", "torch.inference_mode()")


@pytest.mark.parametrize("context", TURN_OFF)
@pytest.mark.parametrize("decorator", TURN_OFF)
def test_a_region_goes_across_a_context_that_changes_nothing(regions: Regions, context: str, decorator: str) -> None:
    region = only(regions(ACROSS.format(context=context, decorator=f"@{decorator}\n")))
    assert context in region.text
    assert region.text.startswith("y = ")
    assert outs(region) == ["return"]


@pytest.mark.parametrize(
    ("context", "decorator"),
    [
        *((one, "") for one in TURN_OFF),
        ("torch.enable_grad()", "@torch.no_grad()\n"),
        ("torch.no_grad()", "@torch.enable_grad()\n"),
    ],
)
def test_it_ends_at_a_context_that_may_change_something(regions: Regions, context: str, decorator: str) -> None:
    """Where weights want gradients, what is inside has a kernel in training too."""
    found = regions(ACROSS.format(context=context, decorator=decorator))
    assert len(found) == 3
    assert not any("with" in region.text for region in found)


def test_what_is_around_is_known_of_callers_and_of_contexts_around(regions: Regions) -> None:
    found = regions("""
def teacher(x, w):
    y = torch.tanh(x) * w
    with torch.no_grad():
        y = y.softmax(-1)
    return y * y

# mugraph: x=f32[64, 128], w=f32[128]
def loss(x, w):
    print(x.shape)
    with torch.no_grad():
        target = teacher(x, w)
        print(x.shape)
    with torch.inference_mode():
        with torch.inference_mode(False):
            y = torch.tanh(x) * w
            with torch.no_grad():
                y = y.softmax(-1)
        print(x.shape)
    return target.sum(-1) + y.sum(-1)
""")
    assert [region.text.splitlines()[-1].strip() for region in found][:2] == [
        "target = teacher(x, w)",
        "y = torch.tanh(x) * w",
    ]


def test_setting_the_mode_for_good_ends_a_region(regions: Regions) -> None:
    found = regions("""
# mugraph: x=f32[64, 128], w=f32[128]
def scaled(x, w):
    y = torch.tanh(x) * w
    torch.set_grad_enabled(False)
    return y.softmax(-1) * w
""")
    assert not any("set_grad_enabled" in region.text for region in found)
    assert len(found) == 2
