"""Layers that a loop reads by number or by name, as `self.layers[i]`: one kernel takes every one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mugraph.trace.regions.written_out import WrittenOut

from tests.support.in_folder import mugraph_in

LAYER = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return torch.softmax(torch.tanh(x) * self.scale + x, dim=-1)

"""
OTHER = """
class Twice(Layer):
    def forward(self, x):
        return 2 * super().forward(x)

"""
NET = """
# mugraph: x=f32[64, 32]
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        for step in range(3):
            x = {called}(x)
        return x

"""
LIST = "self.layers = nn.ModuleList(Layer() for _ in range(3))"
ADDED = "[self.add_module(f'layer_{n}', Layer()) for n in range(3)]"
IDIOMS = {
    "Numbered": (LIST, "self.layers[step]"),
    "Backwards": (LIST, "self.layers[2 - step]"),
    "Formatted": (ADDED, "self._modules['layer_%d' % step]"),
    "Named": (ADDED, "getattr(self, f'layer_{step}')"),
    "Keyed": ("self.by = nn.ModuleDict({f'at{n}': Layer() for n in range(3)})", "self.by[f'at{step}']"),
    "Plain": (
        "self.a, self.b, self.c = map(Layer, (32, 32, 32)); self.of = [self.a, self.b, self.c]",
        "self.of[step]",
    ),
}
MAIN = """\
import torch
import nets
from tests.public.drivers.common import kernels_here

def wanted(x, layers):
    for layer in layers:
        x = torch.softmax(torch.tanh(x) * layer.scale + x, dim=-1) * (2 if type(layer) is not nets.Layer else 1)
    return x


kernels_here()
torch.manual_seed(0)
with torch.no_grad():
    for name in {names}:
        net, x = vars(nets)[name]().eval(), torch.randn(64, 32)
        layers = [one for one in net.modules() if isinstance(one, nets.Layer)]
        order = layers[::-1] if name == "Backwards" else layers
        torch.testing.assert_close(net(x), wanted(x, order))
"""
CHANGED = """\
    net, x = nets.Numbered().eval(), torch.randn(64, 32)
    net.layers[1] = net.layers[2]
    torch.testing.assert_close(net(x), wanted(x, net.layers))
    net.layers[0] = nets.Twice()
    torch.testing.assert_close(net(x), wanted(x, net.layers))
"""


def test_a_kernel_takes_all_layers(tmp_path: Path) -> None:
    """And what has been done to the layers since is seen."""
    nets = [NET.format(name=name, made=made, called=called) for name, (made, called) in IDIOMS.items()]
    (tmp_path / "nets.py").write_text(LAYER + OTHER + "".join(nets))
    (tmp_path / "main.py").write_text(MAIN.format(names=[*IDIOMS]) + CHANGED)
    mugraph = mugraph_in(tmp_path)
    options = ("--apply", "--json", "--no-measure", "--target", "h100", "--budget", "2", "--file-budget", "200")
    regions = json.loads(mugraph("optimize", "nets.py", *options))["regions"]
    offered = [one for one in regions if one["status"] == "improved" and not one["reason"]]
    assert {one["function"] for one in offered} == {f"{name}.forward" for name in IDIOMS}
    ran = json.loads(mugraph("check", "--run", "--json", "--", sys.executable, "main.py", TRITON_INTERPRET="1"))
    assert {one["function"]: (one["taken"], one["calls"]) for one in ran["regions"]} == {
        **{f"{name}.forward": (3, 3) for name in IDIOMS},
        "Numbered.forward": (8, 9),  # not the layer of another class
    }


NAMES = {"i": 2, "key": "norm", "shift": -1, "x": object(), "flag": True}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("self.layers[i].w", "self.layers[2].w"),
        ("self.layers[i + shift]['a'].w[0]", "self.layers[1]['a'].w[0]"),
        ("self._modules['layer_%d' % i]", "self._modules['layer_2']"),
        ("self.by[f'{key}_{i}'][key]", "self.by['norm_2']['norm']"),
        ("getattr(self.parts[i], f'{key}{i}').w", "self.parts[2].norm2.w"),
        ("getattr(self, 'a b')", "getattr(self, 'a b')"),
        ("self.layers[j]", "self.layers[j]"),
        ("self.layers[x]", "self.layers[x]"),
        ("self.layers[flag]", "self.layers[flag]"),
        ("self.layers[self.at[i]]", "self.layers[self.at[2]]"),
        ("self.layers[i // 0]", "self.layers[i // 0]"),
        ("self.layers[next(i)]", "self.layers[next(i)]"),
    ],
)
def test_what_a_guard_says_of_numbers_is_written_out(expression: str, said: str) -> None:
    assert WrittenOut(NAMES).of(expression) == said
