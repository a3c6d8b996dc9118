"""The type of a tensor's device in the traced program: "cpu" there, "cuda" where its kernels run."""

from __future__ import annotations

import copy

import pytest
from mugraph.trace.run.device_types import DeviceType

BLOCK = """
{before}
# mugraph: x=f32[12, 24], w=f32[24, 24]
def f(x, w):
    y = torch.tanh(x @ w)
    {statement}
    {block}
        z = y @ w
    return torch.softmax(z, -1)
"""
CHOSEN = 'where = x.device.type if isinstance(x.device.type, str) and x.device.type != "mps" else "cpu"'


def program(block, statement="pass", before=""):
    return BLOCK.format(block=block, statement=statement, before=before)


@pytest.mark.parametrize(
    "given",
    [
        {"block": "with torch.autocast(device_type=x.device.type, enabled=False):"},
        {"block": "with torch.autocast(w.device.type, torch.bfloat16, False):"},
        {"block": "with torch.amp.autocast(y.device.type, enabled=x.shape[0] > 100):"},
        {"block": "with torch.autocast(device.type, enabled=False):", "statement": "device = w.device"},
        {"block": "with torch.autocast(device_type=where, enabled=False):", "statement": CHOSEN},
        {"block": "with torch.autocast(getattr(x.device, 'type'), enabled=False):"},
        {"block": "with torch.cuda.amp.autocast(enabled=False):"},
    ],
)
def test_autocast_that_is_off_is_part_of_a_region(regions, given):
    (region,) = regions(program(**given))
    assert region.text.startswith("y = ")
    assert region.text.endswith("return torch.softmax(z, -1)")
    assert region.guards == ()


def test_the_type_is_guarded_where_it_was_there_before(regions):
    text = """
    def inner(x, w, kind):
        with torch.autocast(kind, enabled=False):
            return torch.softmax(torch.tanh(x @ w) @ w, -1)

    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        kind = x.device.type
        print(kind)
        y = inner(x, w, kind)
        print(y.shape)
        return y
    """
    (region,) = regions(text)
    assert region.text == "y = inner(x, w, kind)"
    assert "kind in ('cuda', x.device.type)" in region.guards


@pytest.mark.parametrize(
    "statement",
    [
        "w = w * (2 if x.device.type == 'cuda' else 1)",
        "w = w * (2 if 'cpu' == x.device.type else 1)",
        "w = w * (2 if x.device.type in ('cuda', 'xpu') else 1)",
        "w = w * {'cpu': 1, 'cuda': 2}[x.device.type]",
        "w = w * {'a': 2}.get(x.device.type, 1)",
        "w = w * len(x.device.type)",
        "w = w * (2 if f'{x.device.type}:0' == 'cuda:0' else 1)",
        "w = w * (2 if ('is ' + x.device.type) == 'is cuda' else 1)",
        "w = w * (2 if ('%s' % x.device.type) == 'cuda' else 1)",
        "w = w * (2 if ''.join([x.device.type]) == 'cuda' else 1)",
        "w = w * (2 if x.device.type.startswith('cu') else 1)",
        "w = w * (2 if x.device.type > 'cq' else 1)",
        "w = w * (2 if x.device.type == w.device.type else 1)",
        "w = w * (2 if getattr(x.device, 'type') == 'cuda' else 1)",
        "w = w * (2 if x.device.type[1] == 'u' else 1)",
    ],
)
def test_what_would_differ_on_a_gpu_is_no_part_of_a_region(regions, statement):
    for region in regions(program("if True:", statement)):
        assert statement not in region.text


def test_autocast_that_is_on_is_none(regions):
    for enabled in ("", ", enabled=x.shape[0] < 100", ", enabled=x.is_cuda"):
        block = f"with torch.autocast(x.device.type, torch.bfloat16{enabled}):"
        for region in regions(program(block)):
            assert "with" not in region.text


def test_tensors_are_made_where_the_live_ins_are(regions):
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        y = x @ w + torch.arange(24, device=x.device.type)
        bias = torch.full((24,), 0.5).to(w.device.type)
        place = torch.device(x.device.type)
        return torch.softmax(y + bias * torch.ones(24, device=place), -1)
    """
    (region,) = regions(text)
    assert region.text.startswith("y = ")


@pytest.mark.parametrize("device", ["other.device", "other.device.type"])
def test_the_device_of_a_tensor_that_is_none_of_the_live_ins_is_guarded(regions, device):
    text = f"""
    # mugraph: x=f32[12, 24], w=f32[24, 24], other=f32[3, 5]
    def f(x, w, other):
        y = torch.softmax(x @ w, -1)
        return y, torch.arange(24, device={device}) * 2.0
    """
    (region,) = regions(text)
    assert "str(other.device) in ('cuda', str(x.device))" in region.guards
    (region,) = regions(text.replace(device, device.replace("other", "w")))
    assert not any("device" in guard for guard in region.guards)


def test_only_what_differs_is_told():
    told = []
    kind = DeviceType.of("cpu", lambda: told.append(1))
    assert kind != "mps"
    assert kind != "xpu"
    assert (kind == "mps") is False
    assert kind != 3
    assert kind not in ("meta", "xpu")
    assert bool(kind)
    assert isinstance(kind, str)
    assert told == []
    assert kind == "cpu"
    assert kind != "cuda"
    assert len(told) == 2
    assert type(copy.deepcopy(kind)) is str
    assert len(told) == 3
