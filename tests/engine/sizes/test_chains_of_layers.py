"""Element-wise calls between the products of a layer are a kernel of their own at every size, as the rotation of
queries and keys between a projection and attention."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units

from tests.support.in_folder import mugraph_in

CODE = """\
import torch
import torch.nn.functional as F


def turned(x, angles):
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    angles = angles.view(1, pairs.size(1), 1, pairs.size(3), 2)
    first = pairs[..., 0] * angles[..., 0] - pairs[..., 1] * angles[..., 1]
    second = pairs[..., 1] * angles[..., 0] + pairs[..., 0] * angles[..., 1]
    return torch.stack([first, second], -1).flatten(3).type_as(x)


# mugraph: t=1..21, x=f32[1, t, 64], w=f32[128, 64], angles=f32[t, 16, 2], at=i64[t]
# mugraph: keys=f32[1, 1, 24, 32], values=f32[1, 1, 24, 32], mask=bool[1, 1, t, 24]
def pairs(x, w, angles, at, keys, values, mask):
    size, length, _ = x.shape
    q, k, v = F.linear(x, w).split([64, 32, 32], dim=-1)
    q = turned(q.view(size, length, 2, 32), angles)
    k = turned(k.view(size, length, 1, 32), angles)
    q, k, v = (one.transpose(1, 2) for one in (q, k, v.view(size, length, 1, 32)))
    keys[:, :, at] = k
    values[:, :, at] = v
    several = keys.repeat_interleave(2, dim=1), values.repeat_interleave(2, dim=1)
    return F.scaled_dot_product_attention(q, *several, attn_mask=mask)


# mugraph: n=2..19, h=f32[2, n, 48], w=f32[96, 48], cos=f32[n, 8], sin=f32[n, 8], out=f32[48, 48]
def halves(h, w, cos, sin, out):
    q, k = (h @ w.mT).chunk(2, dim=-1)
    heads = q.view(2, -1, 3, 16)
    low, high = heads[..., :8], heads[..., 8:]
    c, s = cos[:, None], sin[:, None]
    q = torch.cat((low * c - high * s, high * c + low * s), dim=-1).flatten(2)
    return torch.softmax(q @ k.mT, dim=-1) @ k @ out
"""
DRIVE = """\
import torch
import code_, own
from tests.public.drivers.common import kernels_here

kernels_here()
torch.manual_seed(0)
with torch.no_grad():
    for t in (1, 2, 11, 21):
        keys, values = torch.randn(1, 1, 24, 32), torch.randn(1, 1, 24, 32)
        x, w, angles = torch.randn(1, t, 64), torch.randn(128, 64) / 8, torch.randn(t, 16, 2)
        mask = torch.ones(t, 24, dtype=torch.bool).tril()[None, None]
        given = [(x, w, angles, torch.arange(t), keys.clone(), values.clone(), mask) for _ in range(2)]
        torch.testing.assert_close(code_.pairs(*given[0]), own.pairs(*given[1]), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(given[0][4], given[1][4], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(given[0][5], given[1][5], rtol=1e-4, atol=1e-4)
    for n in (2, 7, 19):
        given = [torch.randn(2, n, 48), torch.randn(96, 48) / 7, torch.randn(n, 8), torch.randn(n, 8)]
        out = torch.randn(48, 48)
        torch.testing.assert_close(code_.halves(*given, out), own.halves(*given, out), rtol=1e-4, atol=1e-4)
"""
CALLS = {"pairs": 4, "halves": 3}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layer") / "code_.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize("function", CALLS)
def test_no_arithmetic_is_left_to_pytorch(path: Path, function: str) -> None:
    region = next(one for one in trace_file(path).regions if one.function == function)
    assert region.dynamic is not None
    parts, reasons = ranged_units(region)
    assert reasons == ()
    plain = [call.target for part in parts if isinstance(part, PlainCalls) for call in part.calls]
    assert not any(target.endswith((".mul", ".sub", ".stack", ".cat")) for target in plain), plain
    units = [part for part in parts if isinstance(part, SearchUnit)]
    assert all(unit.program.least for unit in units)


def test_the_kernels_take_every_length(path: Path) -> None:
    (path.parent / "own.py").write_text(CODE)
    (path.parent / "main.py").write_text(DRIVE)
    mugraph = mugraph_in(path.parent)
    mugraph("optimize", path.name, "--apply", "--json", "--no-measure", "--target", "h100", "--budget", "2")
    checked = json.loads(mugraph("check", "--run", "--json", "--", sys.executable, "main.py", TRITON_INTERPRET="1"))
    taken = {one["function"]: (one["taken"], one["calls"]) for one in checked["regions"]}
    assert taken == {name: (calls, calls) for name, calls in CALLS.items()}, checked
