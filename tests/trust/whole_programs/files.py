"""Whole files: helpers, functions and modules with shapes above them. The same seed gives the same file."""

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import torch

from tests.trust.whole_programs.blocks import draw, indented
from tests.trust.whole_programs.body import Body

HEAD = """\
import contextlib
import functools
import logging
from collections import namedtuple
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

LOGGER = logging.getLogger(__name__)
NOTES = []
SCALE = 0.5
EPS = 1e-6
COUNT = 0
FLAGS = {"deep": False}
Pair = namedtuple("Pair", "first second")


@dataclass
class Output:
    value: object
    more: object = None


@contextlib.contextmanager
def noted(word):
    NOTES.append(word)
    yield


def counted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        NOTES.append(function.__name__)
        return function(*args, **kwargs)

    return inner


def combine(x, other=None, *, scale=SCALE):
    if other is None:
        return x
    return x * scale + torch.tanh(other)
"""
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "bool": torch.bool}
WIDTH = 8
ATTEMPTS = 60


class Unusable(Exception):
    """Nothing that runs came of this draw."""


def drawn(seed: int, entries: int = 2) -> str:
    """The text of a file whose functions run in plain PyTorch."""
    rng = random.Random(f"programs/{seed}")
    namespace: dict[str, Any] = {}
    text = HEAD
    with contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng():
        torch.manual_seed(seed)
        exec(text, namespace)
        text += _added(namespace, _helper(rng, namespace))
        for number in range(entries):
            for _ in range(ATTEMPTS):
                with contextlib.suppress(Unusable):
                    made = _module(rng, namespace, number) if rng.random() < 0.5 else _function(rng, namespace, number)
                    text += _added(namespace, made)
                    break
    return text


def _added(namespace: dict[str, Any], made: str) -> str:
    exec(made, namespace)
    return f"\n\n{made}"


def _helper(rng: random.Random, namespace: dict[str, Any]) -> str:
    body = Body(rng, {**namespace, "helper": torch.tanh}, {"x": torch.randn(4, WIDTH), "gain": 1.0})
    for _ in range(rng.randint(1, 3)):
        draw(body)
    lines = body.lines or ["x = x * 0.5"]
    if any(
        word in line for line in lines for word in ("helper(", "assert", "view", "match ", "[")
    ):  # of other shapes, too
        lines = ["x = torch.tanh(x) * gain"]
    return "\n".join(["def helper(x, gain=1.0):", *indented(lines), "    return x"]) + "\n"


def _function(rng: random.Random, namespace: dict[str, Any], number: int) -> str:
    kind = rng.choices(("f32", "f16", "bf16"), (7, 2, 1))[0]
    spec = _spec(rng, kind)
    name = f"{rng.choice(('mix', 'update', 'block', 'attend', 'project'))}_{number}"
    given = _given(spec)
    parameters = list(spec)
    for parameter, default in _flags(rng):
        parameters.append(f"{parameter}={default!r}")
        given[parameter] = default
    body = Body(rng, namespace, given)
    for _ in range(rng.randint(3, 9)):
        draw(body)
    lines = [f"# mugraph: {_comment(spec)}"]
    lines += rng.choices(([], ["@torch.no_grad()"], ["@counted"]), (10, 1, 1))[0]
    lines += [
        f"def {name}({', '.join(parameters)}):",
        *_doc(rng),
        *indented(body.lines),
        f"    return {_returned(body)}",
    ]
    text = "\n".join(lines) + "\n"
    _tried(text, namespace, name, spec, rng)
    return text


def _module(rng: random.Random, namespace: dict[str, Any], number: int) -> str:
    kind = rng.choices(("f32", "bf16"), (8, 1))[0]
    spec = _spec(rng, kind, module=True)
    name = f"{rng.choice(('Block', 'Mixer', 'Head', 'Gated'))}{number}"
    lines = [f"# mugraph: {_comment(spec)}", f"class {name}(nn.Module):", f"    def __init__(self, dim={WIDTH}):"]
    lines += [f"        {line}" for line in ["super().__init__()", *_attributes(rng, namespace, number)]]
    if kind != "f32":
        lines.append("        self.to(torch.bfloat16)")
    lines += ["", "    @property", "    def factor(self):", "        return SCALE * 2"]
    lines += ["", "    @staticmethod", "    def _step_plain(t):", "        return torch.tanh(t) + t"]
    step = _method(rng, namespace, lines, name)
    lines += ["", *step]
    model = _instance("\n".join(lines) + "\n", namespace, name)
    given = {"self": model, **_given(spec)}
    parameters = ["self", *spec]
    for parameter, default in _flags(rng):
        parameters.append(f"{parameter}={default!r}")
        given[parameter] = default
    body = Body(rng, namespace, given)
    for _ in range(rng.randint(3, 9)):
        draw(body)
    decorator = rng.choices(([], ["    @torch.no_grad()"], ["    @counted"]), (10, 1, 1))[0]
    written = [*_doc(rng), *indented(body.lines), f"    return {_returned(body)}"]
    lines += ["", *decorator, f"    def forward({', '.join(parameters)}):", *(f"    {line}" for line in written)]
    text = "\n".join(lines) + "\n"
    _tried(text, namespace, name, spec, rng)
    return text


def _method(rng: random.Random, namespace: dict[str, Any], lines: list[str], name: str) -> list[str]:
    model = _instance("\n".join(lines) + "\n", namespace, name)
    body = Body(rng, namespace, {"self": model, "t": torch.randn(4, WIDTH)})
    for _ in range(rng.randint(1, 3)):
        draw(body)
    if any("_step" in line for line in body.lines):
        body.lines = ["t = torch.relu(t)"]
    return [
        "    def _step_own(self, t):",
        *(f"    {line}" for line in indented(body.lines)),
        f"        return {rng.choice(('t', 't * 0.5'))}",
    ]


def _instance(text: str, namespace: dict[str, Any], name: str) -> Any:
    own = dict(namespace)
    try:
        exec(text, own)
        return own[name]().eval()
    except Exception as error:
        raise Unusable(f"{error}") from error


def _attributes(rng: random.Random, namespace: dict[str, Any], number: int) -> list[str]:
    always = [
        "self.scale, self.flag, self.count, self.last = 0.5, True, 0, None", "self.options = {'gain': 2.0}",
        "self.seen = []", "self.register_buffer('state', torch.zeros(dim))",
    ]  # fmt: skip
    some = [
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
    ]  # fmt: skip
    inner = [
        one
        for one, value in namespace.items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and one[-1:].isdigit()
    ]
    some += [f"self.inner = {one}()" for one in inner] * 2
    return always + rng.sample(some, rng.randint(2, 6))


def _spec(rng: random.Random, kind: str, *, module: bool = False) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Argument -> type and shape, of rows of WIDTH."""
    lead = rng.choice(((4,), (6,), (2, 4), (3, 4)))
    names = ("x", "y", "mem") if module else ("x", "y", "w", "z")
    count = rng.choice((1, 2, 2)) if module else rng.choice((1, 2, 2, 3))
    spec: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name in names[:count]:
        spec[name] = (kind, (WIDTH, WIDTH) if name == "w" else (*lead, WIDTH))
    if rng.random() < 0.1:
        spec["mask"] = ("bool", (*lead, WIDTH))
    return spec


def _flags(rng: random.Random) -> list[tuple[str, Any]]:
    found = [("deep", True), ("causal", False), ("bias", None), ("gain", 1.5), ("steps", 2)]
    return rng.sample(found, rng.choice((0, 0, 1, 2)))


def _given(spec: dict[str, tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, (kind, shape) in spec.items():
        numbers = torch.randn(shape) * (0.3 if name == "w" else 1.0)
        made[name] = numbers > 0 if kind == "bool" else numbers.to(DTYPES[kind])
    return made


def _comment(spec: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name}={kind}[{', '.join(map(str, shape))}]" for name, (kind, shape) in spec.items())


def _doc(rng: random.Random) -> list[str]:
    return rng.choices(([], ['    """What it computes."""'], ["    # é, ü and 漢 before what is computed"]), (6, 1, 1))[
        0
    ]


def _returned(body: Body) -> str:
    rng = body.rng
    last = body.tensors(own=False)[-3:]
    if not last:
        raise Unusable("nothing to return")
    names = [
        rng.choice(last),
        *(one for one in body.names if rng.random() < 0.3 and body.tensors() and one in body.tensors(own=False)),
    ]
    forms = [
        names[-1],
        f"{names[-1]} * 0.5",
        f"torch.tanh({names[0]})",
        f"({', '.join(names)},)",
        f"[{', '.join(names)}]",
    ]
    forms += [
        f"{{'out': {names[0]}, 'more': {names[-1]}}}",
        f"Pair({names[0]}, {names[-1]})",
        f"Output({names[0]}, more={names[-1]})",
    ]
    forms += [f"{names[0]}, {names[-1]}.relu()", f"{names[0]} + {names[-1]}.mean()", f"{names[0]}, {names[-1]}.shape"]
    every = body.tensors(own=False)
    if rng.random() < 0.5:  # what is read of them tells the more
        return f"{{{', '.join(f'{one!r}: {one}' for one in every)}}}"
    return rng.choice(forms)


def _tried(text: str, namespace: dict[str, Any], name: str, spec: dict[str, Any], rng: random.Random) -> None:
    """Raises Unusable where it does not run as a whole, or gives other results each time."""
    results: list[Any] = []
    for _ in range(2):
        own = dict(namespace)
        try:
            torch.manual_seed(1)
            exec(text, own)
            target = own[name]
            called = target().eval() if isinstance(target, type) else target
            with torch.no_grad():
                results.append(repr(called(**_given(spec))))
        except Exception as error:
            raise Unusable(f"{error}") from error
    if results[0] != results[1] or "nan" in results[0] or "tensor" not in results[0]:
        raise Unusable("results differ")
