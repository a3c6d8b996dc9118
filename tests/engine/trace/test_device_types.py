"""The type of a tensor's device in the traced program: that of the GPU on which its kernels run."""

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


def factor(regions, by, statement="pass"):
    """What `w` is multiplied by in the program's one region, and its guards."""
    (region,) = regions(program("if True:", f"{statement}\n    w = w * {by}"))
    assert by in region.text
    (found,) = {arg for call in region.calls if call.target.endswith("mul") for arg in call.args if arg in (1, 2, 4)}
    return found, region.guards


@pytest.mark.parametrize(
    ("by", "there"),
    [
        ("(2 if x.device.type == 'cuda' else 1)", 2),
        ("(2 if 'cpu' == x.device.type else 1)", 1),
        ("(2 if x.device.type in ('xpu', 'cuda') else 1)", 2),
        ("(2 if x.device.type not in ('cpu', 'mps') else 1)", 2),
        ("{'cpu': 1, 'cuda': 2}[x.device.type]", 2),
        ("{'cuda': 2}.get(x.device.type, 1)", 2),
        ("len(x.device.type)", 4),
        ("(2 if f'{x.device.type}:0' == 'cuda:0' else 1)", 2),
        ("(2 if ('is ' + x.device.type) == 'is cuda' else 1)", 2),
        ("(2 if ('%s' % x.device.type) == 'cuda' else 1)", 2),
        ("(2 if ''.join([x.device.type]) == 'cuda' else 1)", 2),
        ("(2 if x.device.type.startswith('cu') else 1)", 2),
        ("(2 if x.device.type > 'cq' else 1)", 2),
        ("(2 if x.device.type == w.device.type else 1)", 2),
        ("(2 if x.device.type[1] == 'u' else 1)", 2),
        ("(2 if x.is_cuda else 1)", 2),
        ("(1 if not w.is_cpu else 2)", 1),
        ("(2 if torch.tanh(x).is_cuda else 1)", 2),
        ("(2 if getattr(x.device, 'type') == 'cuda' else 1)", 2),
    ],
)
def test_what_differs_on_a_gpu_is_decided_as_there(regions, by, there):
    found, guards = factor(regions, by)
    assert found == there
    assert "x.device.type == 'cuda'" in guards


def test_what_is_decided_before_a_region_is_guarded_by_what_follows_from_it(regions):
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        by = 3.0 if x.is_cuda else 5.0
        print(by)
        return torch.softmax(torch.tanh(x @ w) * by, -1)
    """
    (region,) = regions(text)
    assert region.guards == ("by == 3.0",)


def test_where_a_tensor_is_that_no_region_reads_is_guarded(regions):
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24], other=f32[3, 5]
    def f(x, w, other):
        y = torch.tanh(x @ w)
        place = "cuda" if other.is_cuda else "cpu"
        return torch.softmax(y + torch.arange(24, device=place), -1)
    """
    (region,) = regions(text)
    assert {"other.is_cuda is True", "x.device.type == 'cuda'"} <= set(region.guards)
    (region,) = regions(text.replace("other.is_cuda", 'other.device.type == "cuda"'))
    assert {"str(other.device) in ('cuda', str(x.device))", "x.device.type == 'cuda'"} <= set(region.guards)


def test_a_tensor_without_dimensions_may_be_elsewhere(regions):
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24], t=f32[]
    def f(x, w, t):
        y = torch.tanh(x @ w)
        by = 3.0 if t.is_cuda else 5.0
        return torch.softmax(y * t * by, -1)
    """
    (region,) = regions(text)
    assert "t.is_cuda is True" in region.guards


def test_what_does_not_run_on_a_gpus_way_is_told_the_cpu(regions):
    """What it asks is part of no region, and the rest has some."""
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        y = torch.softmax(x @ w, -1)
        by = 1 / 0 if x.is_cuda else 2
        return torch.softmax(torch.tanh(y @ w) * by, -1)
    """
    found = regions(text)
    assert len(found) == 2
    assert not any("is_cuda" in region.text for region in found)
    assert found[1].guards == ("by == 2",)


def test_what_needs_numbers_is_told_the_gpu_all_the_same(trace):
    text = """
    # mugraph: x=f32[12, 24], w=f32[24, 24]
    def f(x, w):
        if float(x.abs().amax()) < 0:
            return x
        y = torch.tanh(x @ w)
        by = 2 if x.is_cuda else 3
        return torch.softmax(y * by, -1)
    """
    found = trace(text).regions
    assert any("is_cuda" in region.text for region in found)


def test_sizes_that_decide_on_the_way_of_a_gpu_are_found(trace):
    """Where a size is a symbol, the code is told what it was told where it was traced."""
    text = """
    # mugraph: b=1..64, x=f32[b, 24], w=f32[24, 24]
    def f(x, w):
        by = 2.0 if {asks} and x.shape[0] > 7 else 3.0
        return torch.softmax(torch.tanh(x @ w) * by, -1)
    """
    for asks in ("x.is_cuda", "x.device.type == 'cuda'", "getattr(x.device, 'type') == 'cuda'"):
        (region,) = trace(text.format(asks=asks)).regions
        assert region.dynamic is None
    (region,) = trace(text.format(asks="x.is_cpu")).regions
    assert region.dynamic is not None


@pytest.mark.parametrize(
    "by", ["(2 if getattr(x, 'is_cuda') else 1)", "(2 if str(x.device) == 'cuda' else 1)", "(x.get_device() + 2)"]
)
def test_what_is_asked_in_another_way_is_no_part_of_a_region(regions, by):
    for region in regions(program("if True:", f"w = w * {by}")):
        assert by not in region.text


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
