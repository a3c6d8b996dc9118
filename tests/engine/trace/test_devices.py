"""Programs that name devices: traced on the CPU, run on a GPU, and the same there."""

from __future__ import annotations

import pytest
import torch
from mugraph.ir.region import DEVICE
from mugraph.trace.regions.replay import replay


def calls(region):
    return [call.target.rpartition(".")[2] for call in region.calls]


MASKED = """
{globals}
# mugraph: x=f32[4, 6], w=f32[6, 6]
def masked(x, w):
    {before}
    y = x @ w
    steps = torch.arange(6, device={device})
    bias = torch.full((6,), 0.5, device={device}) * steps
    return y + bias{after}
"""


def program(device="x.device", before="pass", after="", **rest):
    return MASKED.format(device=device, before=before, after=after, globals=rest.get("module", ""))


@pytest.mark.parametrize("device", ["x.device", '"cuda"', 'torch.device("cuda")', '"cuda:0"', "None", "0"])
def test_one_region_on_the_live_ins_device(regions, device):
    (region,) = regions(program(device))
    made = [call for call in region.calls if call.target in ("torch.arange", "torch.full")]
    assert [call.kwargs["device"] for call in made] == [DEVICE, DEVICE]
    env = {live.value: torch.randn(region.values[live.value].shape) for live in region.live_ins}
    (out,) = region.live_outs
    assert replay(region.calls, env)[out.value].shape == (4, 6)
    on_meta = {value: tensor.to("meta") for value, tensor in env.items()}
    assert replay(region.calls, on_meta)[out.value].device.type == "meta"
    made_of_numbers = "_default_type('torch.float32')"  # torch.full's, where it is told no type
    assert region.guards == (("_on_default_device(x.device)",) if device == "None" else ()) + (made_of_numbers,)


def test_named_devices_are_guarded(regions):
    (region,) = regions(program("place", "place = x.device"))
    full = "_default_type('torch.float32')"
    assert region.guards in ((full,), ("str(place) in ('cuda', str(x.device))", full))
    module = 'PLACE = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    (region,) = regions(program("PLACE", module=module))
    assert region.guards == ("str(PLACE) in ('cuda', str(x.device))", full)
    helper = f"{module}\n\ndef scale(x):\n    return x * torch.ones(6, device=PLACE)\n"
    (region,) = regions(program(after=" + scale(y)", module=helper))
    assert {"_runs(_here['scale'], 'scale')", "str(PLACE) in ('cuda', str(x.device))"} < set(region.guards)


@pytest.mark.parametrize("statement", [
    'z = (x @ w).cpu()',
    'z = (x @ w).to("cpu")',
    'z = torch.ones(6, 6, device="cpu") @ w',
    'z = torch.ones(6, 6, device=torch.device("cpu")) @ w',
    'z = x @ w if str(x.device) == "cpu" else w',
    'z = x @ w if x.device == torch.device("cpu") else w',
    'z = x @ w if torch.cuda.is_available() else w',
])  # fmt: skip
def test_what_would_differ_on_a_gpu_is_no_part_of_a_region(regions, statement):
    text = f"""
    # mugraph: x=f32[4, 6], w=f32[6, 6]
    def f(x, w):
        y = x @ w
        {statement}
        return y.sum() + z.sum()
    """
    for region in regions(text):
        assert statement not in region.text


def test_a_tensor_of_the_default_device_stays_where_it_is(regions):
    text = """
    # mugraph: x=f32[4, 6]
    def f(x):
        y = x @ x.T
        mask = torch.ones(4, 4)
        y = y * mask
        return y, mask
    """
    assert not any(live.expression == "mask" for region in regions(text) for live in region.live_outs)


@pytest.mark.parametrize("context", ['torch.autocast("cuda", dtype=torch.float16)', 'torch.autocast("cpu")'])
def test_autocast_ends_a_region_without_a_gpu_too(regions, context):
    text = f"""
    # mugraph: x=f32[4, 6], w=f32[6, 6]
    def f(x, w):
        y = x @ w
        with {context}:
            y = y @ w
        return (y @ w).sum()
    """
    for region in regions(text):
        assert "with" not in region.text


def test_decorated_with_autocast(regions):
    text = """
    @torch.autocast("cuda", dtype=torch.float16)
    def inner(x, w):
        return x @ w

    # mugraph: x=f32[4, 6], w=f32[6, 6]
    def f(x, w):
        y = x @ w
        y = inner(y, w)
        return (y @ w).sum()
    """
    assert not any("inner(" in region.text for region in regions(text))
