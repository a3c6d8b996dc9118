"""Code that keeps its precision in a program that runs under autocast: the kernel is asked where autocast is off."""

from __future__ import annotations

import pytest

INSIDE = """
def precise(x, w):
    {before}
    {off}
        y = torch.tanh(x.float() @ w)
        y = torch.softmax(y @ w, -1)
    return y

# mugraph: x=f32[12, 24], w=f32[24, 24]
def f(x, w):
    {on}
        y = precise(x, w)
    return y
"""
ON = (
    'with torch.autocast("cuda", torch.float16):',
    'with torch.autocast("cpu", torch.bfloat16):',
    "with torch.autocast(x.device.type, torch.bfloat16):",
)
OFF = ("with torch.autocast(x.device.type, enabled=False):", 'with torch.amp.autocast("cpu", enabled=False):')


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("before", ["pass", "x = x * 2"])
def test_the_region_is_inside(regions, on, off, before):
    (region,) = regions(INSIDE.format(on=on, off=off, before=before))
    assert [line.strip() for line in region.text.splitlines()] == [
        "y = torch.tanh(x.float() @ w)",
        "y = torch.softmax(y @ w, -1)",
    ]


@pytest.mark.parametrize("off", OFF)
def test_where_autocast_was_off_it_goes_across(regions, off):
    (region,) = regions(INSIDE.format(on="if True:", off=off, before="x = x * 2"))
    assert region.text.endswith("y = precise(x, w)")


def test_a_function_that_turns_it_off_for_itself(regions):
    text = """
    @torch.autocast("cuda", enabled=False)
    def precise(x, w):
        return torch.softmax(torch.tanh(x.float() @ w) @ w, -1)

    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        with torch.autocast("cuda", torch.float16):
            y = precise(x, w)
        return y
    """
    (region,) = regions(text)
    assert region.text == "torch.softmax(torch.tanh(x.float() @ w) @ w, -1)"


@pytest.mark.parametrize("on", ON)
def test_after_it_all_is_as_before(regions, on):
    text = f"""
    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        {on}
            y = x @ w
            try:
                with torch.autocast(x.device.type, enabled=False):
                    raise ValueError
            except ValueError:
                y = torch.tanh(y @ w).float()
        y = torch.tanh(y @ w)
        return torch.softmax(y @ w, -1)
    """
    (region,) = regions(text)
    assert region.text.splitlines()[0] == "y = torch.tanh(y @ w)"
    assert len(region.text.splitlines()) == 2
