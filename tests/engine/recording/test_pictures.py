"""Objects as they were: each case is recorded by `mugraph record` and traced from its picture."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.recording.memory import pictured, recorded, recorded_shapes
from mugraph.trace import picture as p
from mugraph.trace.tracer import trace_file

from .conftest import Record

Traced = Callable[[], Trace]

MODELS = '''
import weakref
import torch
from functools import partial
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
import torch.nn.functional as F

READY = False
SCALE = None
GROUP = None


class Normed(nn.Module):
    """Its eps is bound by a partial."""
    def __init__(self, dim, norm):
        super().__init__()
        self.norm = norm(dim)
        self.lin = nn.Linear(dim, dim)
    def forward(self, x):
        return self.lin(self.norm(x))


class Cached(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.cache = None
    def forward(self, x, at):
        self.cache[at] = x
        return self.lin(x) @ self.cache.t()


class Tagger(nn.Module):
    """Recurrent layers hold weak references to their weights, of which one may be gone."""
    def __init__(self, dim):
        super().__init__()
        self.rnn = nn.LSTM(dim, dim)
        self.head = nn.Linear(dim, 8)
        self.last = weakref.ref(nn.Linear(1, 1))
    def forward(self, x):
        h, _ = self.rnn(x)
        assert self.last() is None
        assert self.rnn._flat_weight_refs[0]() is self.rnn._parameters["weight_ih_l0"]
        return torch.softmax(self.head(h), dim=-1)


class Tied(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.table = nn.Embedding(size, dim)
        self.head = nn.Linear(dim, size, bias=False)
        self.head.weight = self.table.weight
    def forward(self, x):
        return self.head(F.relu(x)) @ self.table.weight


class Parallel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert READY, "the model parallel group is not initialized"
        self.lin = nn.Linear(dim, dim)
    def forward(self, x):
        assert GROUP is not None, "the model parallel group is not initialized"
        return F.relu(self.lin(x))


class Merging(nn.Module):
    """As loralib's: train() returns nothing."""
    def __init__(self, dim, rank):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim))
        self.a, self.b = nn.Parameter(torch.randn(rank, dim)), nn.Parameter(torch.randn(dim, rank))
        self.merged = False
    def train(self, mode=True):
        self.merged = not mode
    def forward(self, x):
        if self.merged:
            return F.linear(x, self.weight)
        return F.linear(x, self.weight) + x @ self.a.t() @ self.b.t()


class Encoder(nn.Module):
    def __init__(self, dim, dtype):
        super().__init__()
        self.lin = nn.Linear(dim, dim, dtype=dtype)
    def encode(self, x, *rest, scale):
        return torch.softmax(self.lin(x) * scale, -1), rest[0]


class Plain:
    """No module, and no constructor of its own."""
    def project(self, x):
        return torch.softmax(x @ self.weight, -1)


class Sub(Normed):
    """No constructor of its own, and no forward either."""


class Configured(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lin = nn.Linear(config.dim, config.dim)
        self.act = lambda x: F.relu(x) * config.dim
    def forward(self, x):
        return self.act(self.lin(x)) * self.config.scales["out"]


class Causal(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, size, size))
    def forward(self, q, k, v):
        s = q @ k.transpose(-2, -1)
        s = s.masked_fill(self.mask[:, :q.shape[1], :q.shape[1]] == 0, float("-inf"))
        return torch.softmax(s, -1) @ v


def rotated(x, freqs, count, flag, kind="plain"):
    y = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * freqs
    out = torch.view_as_real(y).flatten(-2)
    return torch.softmax(out @ out.transpose(-2, -1), -1) * count if flag else None


def scaled(x, w):
    return torch.relu(x @ w) * SCALE


def layer(x, w):
    return torch.relu(x @ w)


class Attend(nn.Module):
    """It holds values of an enumeration that is written in C++."""
    def __init__(self, dim, *backends):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.allowed = partial(sdpa_kernel, list(backends))
    def forward(self, x):
        q = self.lin(x)
        with self.allowed():
            y = F.scaled_dot_product_attention(q, x, x)
        return torch.tanh(self.lin(y)) + q
'''

MAIN = """
import dataclasses, torch
from functools import partial
from torch import nn
import models
from models import *

@dataclasses.dataclass
class Config:
    dim: int = 16
    scales: dict = dataclasses.field(default_factory=lambda: {"out": 0.5})
"""


@pytest.fixture
def program(tmp_path: Path, record: Record) -> Callable[[str], Traced]:
    """Runs a script on the models, and gives the way to trace them as it did."""
    models = tmp_path / "models.py"

    def run(script: str) -> Traced:
        models.write_text(MODELS)
        (tmp_path / "main.py").write_text(MAIN + script)
        ran = record(sys.executable, "main.py")
        assert ran.returncode == 0, ran.stderr

        def trace() -> Trace:
            pictures = pictured(models, MODELS)
            return trace_file(models, recorded_shapes=recorded_shapes(models, MODELS), pictures=pictures)

        return trace

    return run


def found(trace: Trace, function: str) -> Region:
    assert trace.errors == ()
    [region] = [region for region in trace.regions if region.function == function]
    assert region.status is None, region.reason
    return region


def test_state_that_no_constructor_makes(program: Callable[[str], Traced], tmp_path: Path):
    """One run, for a run takes seconds: partials, types changed later, caches, ties, groups, train() and data."""
    trace = program("""
torch.set_grad_enabled(False)
torch.manual_seed(0)
Normed(16, partial(nn.LayerNorm, eps=1e-3)).to(torch.bfloat16)(torch.zeros(4, 16, dtype=torch.bfloat16))
cached = Cached(16).eval()
cached.cache = torch.zeros(32, 16)
cached(torch.zeros(16), 3)
Tied(64, 16).eval()(torch.zeros(4, 16))
Attend(16, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH).eval()(torch.zeros(2, 8, 16))
Tagger(16).eval()(torch.zeros(6, 4, 16))
from torch.testing._internal.distributed.fake_pg import FakeStore
torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
models.READY, models.GROUP = True, torch.distributed.new_group([0])
Parallel(16)(torch.zeros(4, 16))
models.READY = False
merging = Merging(16, 2)
merging.eval()
merging(torch.zeros(4, 16))
Encoder(16, torch.float16).encode(torch.zeros(4, 16).half(), 1.5, scale=2)
plain = Plain()
plain.weight = torch.zeros(16, 16).t()
plain.project(torch.zeros(4, 16))
Configured(Config())(torch.zeros(4, 16))
Causal(32)(*torch.zeros(3, 2, 8, 4))
models.SCALE = 0.25
scaled(torch.zeros(4, 16), torch.zeros(16, 8))
rotated(torch.zeros(2, 4, 8), torch.zeros(4, 4, dtype=torch.complex64), 3, True)
""")()
    normed = found(trace, "Normed.forward")
    assert {normed.values[live.value].dtype for live in normed.live_ins} == {"bf16"}
    assert "self.norm.eps == 0.001" in normed.guards
    assert "self.cache" in [live.expression for live in found(trace, "Cached.forward").live_ins]
    tied = found(trace, "Tied.forward")
    attend = [region for region in trace.regions if region.function == "Attend.forward"]
    assert any(call.target.endswith("scaled_dot_product_attention") for region in attend for call in region.calls)
    assert len(tied.live_ins) == 2, "one weight, used twice"
    assert found(trace, "Tagger.forward").text == "torch.softmax(self.head(h), dim=-1)"
    assert len(found(trace, "Parallel.forward").live_ins) == 3
    assert "self.a" not in [live.expression for live in found(trace, "Merging.forward").live_ins], "it was merged"
    encode = found(trace, "Encoder.encode")
    assert {encode.values[live.value].dtype for live in encode.live_ins if live.value not in encode.numbers} == {"f16"}
    project = found(trace, "Plain.project")
    weight = next(live for live in project.live_ins if live.expression == "self.weight")
    assert project.values[weight.value].strides == (1, 16)
    found(trace, "Configured.forward")
    found(trace, "scaled")
    found(trace, "rotated")
    masks = [info.triangle for info in found(trace, "Causal.forward").values.values() if info.triangle is not None]
    assert any(mask.diagonal == 0 and mask.above == 0 for mask in masks), "what a mask holds is known"

    models = tmp_path / "models.py"
    picture = pictured(models, MODELS)["rotated"]
    [freqs] = [node for node in picture.nodes if isinstance(node, p.Tensor) and node.dtype == "complex64"]
    assert (freqs.shape, freqs.strides) == ((4, 4), (4, 1))
    assert (picture.arguments["count"], picture.arguments["flag"], picture.arguments["kind"]) == (3, True, "plain")
    tied_picture = pictured(models, MODELS)["Tied.forward"]
    parameters = [node for node in tied_picture.nodes if isinstance(node, p.Tensor) and node.parameter]
    assert len(parameters) == 1


def test_what_was_set_around_the_call(program: Callable[[str], Traced], tmp_path: Path):
    trace = program("""
x, w = torch.zeros(4, 16), torch.zeros(16, 8)
with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
    layer(x, w)
torch.set_default_dtype(torch.float64)
models.SCALE = torch.ones(8)
with torch.inference_mode():
    scaled(x.double(), w.double())
model = Normed(16, nn.LayerNorm)
model(torch.zeros(2, 16))
model.eval()
with torch.no_grad():
    for size in (2, 5, 5, 5):
        model(torch.zeros(size, 16))
Sub(16, nn.RMSNorm)(torch.zeros(3, 16))
""")()
    pictures = pictured(tmp_path / "models.py", MODELS)
    assert pictures["layer"].around.autocast == {"cpu": "bfloat16"}
    assert not pictures["layer"].around.grad
    [layer] = [region for region in trace.regions if region.function == "layer"]
    assert layer.status == "unsupported"
    assert "autocast (bfloat16 on cpu)" in (layer.reason or "")
    assert pictures["scaled"].around.default_dtype == "float64"
    assert pictures["scaled"].around.inference
    found(trace, "scaled")
    sets = recorded(tmp_path / "models.py", MODELS)["Normed.forward"]
    counts = sorted((one.arguments["x"], one.gradients, one.calls) for one in sets)
    assert counts == [
        ("f64[2, 16]", False, 1),
        ("f64[2, 16]", True, 1),
        ("f64[3, 16]", True, 1),
        ("f64[5, 16]", False, 3),
    ]
    found(trace, "Normed.forward")


def test_comments_come_before_recordings(program: Callable[[str], Traced], tmp_path: Path):
    """Of arguments, and of a constructor; the object is still the recorded one where only arguments are given."""
    program("torch.set_grad_enabled(False)\nNormed(16, partial(nn.LayerNorm, eps=1e-3))(torch.zeros(4, 16))\n")
    models = tmp_path / "models.py"
    pictures = pictured(models, MODELS)
    arguments = MODELS.replace("class Normed", "# mugraph: x=f32[7, 16]\nclass Normed")
    region = found(trace_file(models, source=arguments, pictures=pictures), "Normed.forward")
    assert "self.norm.eps == 0.001" in region.guards
    assert {region.values[live.value].shape[0] for live in region.live_ins if live.expression == "x"} == {7}
    made = MODELS.replace("class Normed", "# mugraph: x=f32[7, 16], init(dim=16, norm=nn.LayerNorm)\nclass Normed")
    region = found(trace_file(models, source=made, pictures=pictures), "Normed.forward")
    assert "self.norm.eps == 1e-05" in region.guards


def test_a_script_whose_set_up_is_gone(tmp_path: Path, record: Record):
    """Its top level wants arguments when it is imported, and what it needs was set when it ran as a script."""
    script = tmp_path / "train.py"
    text = (
        "import sys, torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, sizes):\n        super().__init__()\n        self.lin = nn.Linear(*sizes)\n"
        "    def forward(self, x):\n        return self.lin(x) * factor\n"
        "if len(sys.argv) < 2:\n    raise SystemExit('usage: train.py SIZE')\n"
        "factor = 0.5\ntorch.set_grad_enabled(False)\nNet((8, int(sys.argv[1])))(torch.zeros(2, 8))\n"
    )
    script.write_text(text)
    assert record(sys.executable, "train.py", "4").returncode == 0
    region = found(trace_file(script, pictures=pictured(script, text)), "Net.forward")
    assert "factor == 0.5" in region.guards


def test_what_could_not_be_kept_is_named(tmp_path: Path, record: Record):
    script = tmp_path / "odd.py"
    text = (
        "import torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n        self.lin = nn.Linear(8, 8)\n        self.left = iter([1, 2])\n"
        "    def forward(self, x):\n        return self.lin(x)\n"
        "    def next(self, x):\n        return self.lin(x) * next(self.left)\n"
        "if __name__ == '__main__':\n"
        "    torch.set_grad_enabled(False)\n"
        "    Net()(torch.zeros(2, 8)); Net().next(torch.zeros(2, 8))\n"
    )
    script.write_text(text)
    run = record(sys.executable, "odd.py")
    assert "odd.py: not kept: self.left (a list_iterator)" in run.stderr
    trace = trace_file(script, pictures=pictured(script, text))
    assert found(trace, "Net.forward")
    [after] = [region for region in trace.regions if region.function == "Net.next"]
    assert after.status == "unsupported"
    assert "self.left, a list_iterator" in (after.reason or "")


def test_nothing_runs_when_a_picture_is_read():
    """Not even an import: reading is decoding."""
    code = (
        "import sys\nfrom mugraph.trace.picture import picture_from\n"
        'data = b\'{"owner": {"is": "ref", "at": 0}, "arguments": {}, "globals": {}, "own": 1, "nodes": \'\n'
        'data += b\'[{"is": "object", "of": {"is": "place", "module": "antigravity", "name": "x"}, "state": {}}]}\'\n'
        "picture_from(data)\nassert 'torch' not in sys.modules and 'antigravity' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
