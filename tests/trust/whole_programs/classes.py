"""What a drawn class has beside its `forward`: attributes, properties, methods that call each other."""

from __future__ import annotations

import random
from typing import Any

import torch

ALWAYS = (
    "self.scale, self.flag, self.count, self.last = 0.5, True, 0, None", "self.options = {'gain': 2.0}",
    "self.seen = []", "self.register_buffer('state', torch.zeros(dim))",
    "self.register_buffer('steps', torch.zeros((), dtype=torch.long))",
)  # fmt: skip
SOME = (
    "self.proj = nn.Linear(dim, dim)", "self.lin = nn.Linear(dim, dim, bias=False)",
    "self.norm = nn.LayerNorm(dim)",
    "self.w = nn.Parameter(torch.randn(dim, dim) * 0.2)", "self.weight = nn.Parameter(torch.ones(dim))",
    "self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(2)])", "self.act = nn.GELU()",
    "self.drop = nn.Dropout(0.1)",
    "self.net = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))",
    "self.norm2 = nn.RMSNorm(dim)",
    "self.by_name = nn.ModuleDict({'a': nn.Linear(dim, dim), 'b': nn.Identity()})",
    "self.relu = nn.ReLU(inplace=True)",
    "self.register_buffer('mask', torch.ones(dim, dim).tril())", "self.batch = nn.BatchNorm1d(dim)",
    "self.attend = F.softplus",
    "self.table = nn.Embedding(4, dim)", "self.conv = nn.Conv1d(4, 4, 3, padding=1)",
    "self.depthwise = nn.Conv1d(4, 4, 3, padding=1, groups=4, bias=False)",
    "self.register_buffer('ema', torch.zeros(dim))",
    "self.register_buffer('memory', torch.zeros(6, dim), persistent=False)",
    "self.tied = Residual(nn.Linear(dim, dim)); self.left, self.right = Residual(self.tied.inner), self.tied",
    "self.blocks = nn.ModuleList([Residual(nn.Linear(dim, dim), 0.25) for _ in range(2)])",
    "self.config = Config(scale=0.25)",
)  # fmt: skip
METHODS = (
    ["@functools.cached_property", "def cached(self):", "    return torch.linspace(-1, 1, 8) * self.factor"],
    ["@functools.cached_property", "def cached(self):", "    return torch.tanh(self.state) + 0.5"],
    ["@property", "def offset(self):", "    return self.state.mean() + self.scale"],
    ["def _step_twice(self, t):", "    return self._step_plain(self._step_own(t)) * self.factor"],
    ["def _step_twice(self, t):", "    for _ in range(2):", "        t = torch.tanh(self._step_own(t))",
    "    return t"],
    ["def _step_late(self, t, *, scale=None):", "    scale = self.scale if scale is None else scale",
     "    return self._step_own(t) * scale"],
    ["def _parts(self, t):", "    yield t * self.scale", "    yield torch.tanh(t) + self.state.mean()"],
    ["def _noted(self, t):", "    self.last = t", "    self.steps += 1", "    return self"],
)  # fmt: skip


def attributes(rng: random.Random, namespace: dict[str, Any]) -> list[str]:
    """Statements of `__init__`; classes that were drawn before are submodules at times, also of two parents."""
    inner = [
        one
        for one, value in namespace.items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and one[-1:].isdigit()
    ]
    some = [*SOME, *[f"self.inner = {one}()" for one in inner] * 2]
    some += [f"self.below = {one}(); self.beside = Residual(self.below)" for one in inner]
    return [*ALWAYS, *rng.sample(some, rng.randint(2, 7))]


def methods(rng: random.Random) -> list[str]:
    """Of one name each; `_step_own` is drawn by itself."""
    made: dict[str, list[str]] = {}
    for lines in rng.sample(METHODS, rng.randint(0, 4)):
        name = next(line for line in lines if line.startswith("def ")).split("(")[0]
        made.setdefault(name, ["", *(f"    {line}" for line in lines)])
    return [line for lines in made.values() for line in lines]
