"""Recorded calls that differ in one size become a range of it: told as a comment, searched, applied, run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.recording.memory import Recorded, recorded_shapes
from mugraph.recording.size_ranges import ranged, several
from mugraph.recording.ways import other_ways
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.source import Source
from mugraph.trace.tracer import trace_file

ROOT = str(Path(__file__).parents[3])
BLOCK = """\
import torch


def gated(x, w, v):
    return torch.nn.functional.silu(x @ w) * (x @ v)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 32, bias=False)
        self.down = torch.nn.Linear(64, 32, bias=False)

    def forward(self, x, scale=1.0):
        return torch.nn.functional.silu(self.up(x)) * self.down(x) * scale
"""
MAIN = """\
import sys
import torch
from block import Gated, gated
from tests.public.drivers.common import kernels_here

kernels_here()

torch.manual_seed(0)
w, v = (torch.randn(64, 32) / 8 for _ in range(2))
module = Gated().eval()
with torch.no_grad():
    for t in map(int, sys.argv[1:]):
        x = torch.randn(t, 64)
        want = torch.nn.functional.silu(x @ w) * (x @ v)
        assert torch.allclose(gated(x, w, v), want, atol=1e-5), t
        want = torch.nn.functional.silu(x @ module.up.weight.T) * (x @ module.down.weight.T) * 2.0
        assert torch.allclose(module(x, 2.0), want, atol=1e-5), t
"""

PROBE = """\
import pathlib
import re
import torch
import block
import block_mugraph
from tests.public.drivers.common import kernels_here

kernels_here()
kernels = re.findall(r"mugraph_kernels[.](\\w+)[(]x, w, v[)]  #", pathlib.Path("block.py").read_text())
w, v = (torch.randn(64, 32) / 8 for _ in range(2))
with torch.no_grad():
    for t in (3, 5, 8, 23, 24, 25):  # 25 is larger than what was recorded
        x, taken = torch.randn(t, 64), False
        for name in kernels:
            if getattr(block_mugraph, f"{name}_fits")(x, w, v):
                want = torch.nn.functional.silu(x @ w) * (x @ v)
                assert torch.allclose(getattr(block_mugraph, name)(x, w, v), want, atol=1e-5)
                taken = True
        print(t, taken)
"""


def calls(*shapes: str, **more: str) -> list[Recorded]:
    return [Recorded({"x": shape, **more}, strides={}, calls=1) for shape in shapes]


@pytest.mark.parametrize(
    ("sets", "comment"),
    [
        (calls("f32[8, 64]", "f32[3, 64]", "f32[24, 64]"), "# mugraph: t=3..24, x=f32[t, 64]"),
        (calls("f32[8, 32, 3]", "f32[2, 8, 3]"), "# mugraph: t=2..8, x=f32[t, 4 * t, 3]"),
        (
            [Recorded({"x": "f32[1, 64]", "past": f"(f32[{n}, 64], f32[{n}, 8], 2)"}, calls=1) for n in (3, 5, 9)],
            "# mugraph: t=3..9, x=f32[1, 64], past=(f32[t, 64], f32[t, 8], 2)",
        ),
        ([Recorded({"past": f"(f32[{n}, 64], {n})"}, calls=1) for n in (3, 5, 9)], None),
        (calls("f32[8, 64]", "f32[3, 64]", t="2.0"), "# mugraph: n=3..8, x=f32[n, 64], t=2.0"),
        (calls("f32[1, 8]", "f32[2, 8]", "f32[1, 9]", "f32[1, 10]"), "# mugraph: t=8..10, x=f32[1, t]"),
        (calls("f32[2, 32]", "f32[1, 8]", "f32[1, 9]", "f32[1, 11]"), "# mugraph: t=8..11, x=f32[1, t]"),
        (calls("f32[8, 9]", "f32[2, 3]"), None),  # one more than the other, as any two calls would be
        (calls("f32[8, 9]", "f32[2, 3]", "f32[5, 6]"), "# mugraph: t=2..8, x=f32[t, t + 1]"),
        (calls("f32[8, 5, 36]", "f32[2, 5, 12]", "f32[5, 5, 24]"), "# mugraph: t=2..8, x=f32[t, 5, 4 * (t + 1)]"),
        (calls("f32[8, 9]", "f32[2, 3]", "f32[5, 7]"), None),
        (calls("f32[8, 64]"), None),
        (calls("f32[8, 64]", "f32[0, 64]"), None),
        (calls("f32[8, 64]", "f16[3, 64]"), None),
        ([*calls("f32[8, 64]", start="0"), *calls("f32[3, 64]", start="8")], None),
        ([Recorded({"x": f"f32[{t}, 64]"}, opaque={"cache": "Cache"}) for t in (1, 2)], None),
        (
            [Recorded({"x": f"f32[{t}, 64]"}, strides={"x": [1, t]}) for t in (1, 2)],
            "# mugraph: t=1..2, x=f32[t, 64].stride(1, t)",
        ),
        (
            [Recorded({"x": f"f32[2, 4, {t}, 64]"}, strides={"x": [768 * t, 64, 768, 1]}) for t in (3, 4, 9)],
            "# mugraph: t=3..9, x=f32[2, 4, t, 64].stride(768 * t, 64, 768, 1)",
        ),
        (
            [Recorded({"x": f"f32[{t}, 64]"}, strides={"x": [n, 1]}) for t, n in ((3, 65), (4, 70), (9, 66))],
            None,
        ),
        (
            [
                Recorded({"x": "f32[5, 64]"}, strides={"x": [70, 1]}),
                Recorded({"x": "f32[7, 64]"}, strides={"x": [77, 1]}),
                *calls("f32[8, 64]", "f32[3, 64]"),
            ],
            "# mugraph: t=3..8, x=f32[t, 64]",
        ),
        ([Recorded({"x": f"f32[{t}, 64]"}, wanted_of=["x"]) for t in (1, 2)], None),
    ],
)
def test_the_comment_that_would_say_it(sets: list[Recorded], comment: str | None):
    found = ranged(sets)
    assert (found and found.comment) == comment


@pytest.mark.parametrize(
    ("sets", "comment"),
    [
        (
            calls("f32[1, 5, 8]", "f32[1, 1, 8]", "f32[2, 1, 8]"),
            "# mugraph: t=1..2, n=1..5, x=f32[t, n, 8]",
        ),
        (
            calls("f32[2, 3, 6]", "f32[1, 5, 5]", "f32[4, 3, 12]"),
            "# mugraph: t=1..4, n=3..5, x=f32[t, n, t * n]",
        ),
        (calls("f32[8, 9]", "f32[2, 3]", "f32[4, 3]"), "# mugraph: t=2..8, n=3..9, x=f32[t, n]"),
        (calls("f32[8, 9]", "f32[2, 3]"), None),  # as well one more
        (
            calls("f32[2, 9, 11]", "f32[2, 3, 5]", "f32[1, 3, 4]", "f32[5, 8, 13]"),
            "# mugraph: t=1..5, n=3..9, x=f32[t, n, t + n]",
        ),
        (
            calls("f32[2, 9, 8]", "f32[2, 3, 2]", "f32[1, 3, 2]", "f32[5, 8, 7]"),
            "# mugraph: t=1..5, n=2..8, x=f32[t, n + 1, n]",
        ),
        (
            calls("f32[2, 9, 11]", "f32[2, 3, 5]", "f32[1, 3, 4]"),  # three calls say nothing of a sum of two
            None,
        ),
        (calls("f32[8, 64]", "f32[3, 64]", "f32[24, 64]"), None),
        (calls("f32[1, 5]", "f32[2, 0]", "f32[2, 4]"), None),
        (
            calls("f32[8, 9]", "f32[2, 3]", "f32[4, 3]", t="1", n="2"),
            "# mugraph: m=2..8, s=3..9, x=f32[m, s], t=1, n=2",
        ),
    ],
)
def test_sizes_that_vary_by_themselves(sets: list[Recorded], comment: str | None):
    found = several(sets)
    assert (found and found.comment) == comment


def test_a_recorded_range_is_read_as_the_comment_is():
    plain = "def f(x):\n    return x.exp()\n"
    found = ranged(calls("f32[8, 64]", "f32[3, 64]"))
    assert found is not None
    [told] = find_definitions(Source("file.py", plain), {"f": found.arguments}).entries
    [said] = find_definitions(Source("file.py", f"{found.comment}\n{plain}")).entries
    assert (told.arguments, told.sizes) == (said.arguments, said.sizes)


HEADS = """\
import torch


def attention(q, k, v, past_k, past_v):
    keys = torch.cat((past_k, k), dim=2)
    values = torch.cat((past_v, v), dim=2)
    return torch.softmax(q @ keys.mT * 0.125, dim=-1) @ values


def main():
    torch.manual_seed(0)
    w = torch.randn(128, 384) / 11
    x, past_k, past_v = torch.randn(2, 1, 128), torch.randn(2, 2, 5, 64), torch.randn(2, 2, 5, 64)
    with torch.no_grad():
        for _ in range(9):
            q, k, v = (x @ w).view(2, 1, 3, 2, 64).permute(2, 0, 3, 1, 4)
            y = attention(q, k, v, past_k, past_v)
            past_k, past_v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
            x = y.transpose(1, 2).reshape(2, 1, 128)


if __name__ == "__main__":
    main()
"""


def test_views_of_one_projection_keep_their_strides(tmp_path: Path, record: Callable[..., object]):
    """Of a decoding loop with a cache, written in functions: what they are called with are views that no shape says."""
    path = tmp_path / "heads.py"
    path.write_text(HEADS)
    record(sys.executable, "heads.py")
    [way] = [one for one in other_ways(path, HEADS) if one.comments]
    head = ", ".join(f"{name}=f32[2, 2, 1, 64].stride(384, 64, 384, 1)" for name in "qkv")
    cache = "past_k=f32[2, 2, t, 64], past_v=f32[2, 2, t, 64]"
    assert way.comments == {"attention": f"# mugraph: t=5..13, {head}, {cache}"}
    trace = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
    assert trace.errors == ()
    [region] = [one for one in trace.regions if one.dynamic is not None]
    strides = {one.expression: region.values[one.value].strides for one in region.live_ins}
    assert strides["q"] == strides["k"] == strides["v"] == (384, 64, 384, 1)
    alone = trace_file(path, recorded_shapes=recorded_shapes(path, HEADS))
    (fixed,) = (one for one in alone.regions if one.function == "attention")
    strides = {one.expression: fixed.values[one.value].strides for one in fixed.live_ins}
    assert strides["q"] == (384, 64, 384, 1)


def test_from_a_run_to_kernels_that_take_its_sizes(tmp_path: Path, record: Callable[..., object]):
    block, run = tmp_path / "block.py", tmp_path / "main.py"
    block.write_text(BLOCK)
    run.write_text(MAIN)
    sizes = ("8", "24", "9", "17", "3", "24")
    record(sys.executable, str(run), *sizes, PYTHONPATH=ROOT)
    command = ["-m", "mugraph.cli", "optimize", "block.py", "--no-measure", "--target", "h200", "--json", "--apply"]
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    regions = json.loads(done.stdout)["regions"]
    for function, said in (("gated", "w=f32[64, 32], v=f32[64, 32]"), ("Gated.forward", "scale=2.0")):
        fixed, ranged = [region for region in regions if region["function"] == function]
        assert [fixed["status"], ranged["status"]] == ["improved", "improved"], regions
        assert ranged["share"]["comment"] == f"# mugraph: t=3..24, x=f32[t, 64], {said}"
        assert fixed["share"]["fits"] + ranged["share"]["fits"] == fixed["share"]["of"] == len(sizes)
        assert ranged["verification"]["ranges"][0]["proved"]["by"] == "z3"
    ran = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ROOT},
    )
    assert ran.stdout == "3 True\n5 True\n8 True\n23 True\n24 True\n25 False\n", ran.stdout + ran.stderr


MIXED = """\
import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 32, bias=False)

    def forward(self, x):
        y = self.up(x.float())
        return torch.nn.functional.silu(y) * y


if __name__ == "__main__":
    module = Gated().eval()
    with torch.no_grad():
        for t in (8, 3, 24):
            module(torch.ones(t, 64, dtype=torch.float16))
"""


def test_a_recorded_module_keeps_its_own_types(tmp_path: Path, record: Callable[..., object]):
    """A comment's types are those of the module that it describes; a recorded one has been seen."""
    path = tmp_path / "mixed.py"
    path.write_text(MIXED)
    record(sys.executable, "mixed.py")
    [way] = [one for one in other_ways(path, MIXED) if one.comments]
    trace = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
    assert trace.errors == ()
    [region] = [one for one in trace.regions if one.dynamic is not None]
    assert {one.expression: region.values[one.value].dtype for one in region.live_ins} == {
        "x": "f16",
        "self.up.weight": "f32",
    }
