"""Whole files: helpers, functions and modules with shapes above them. The same seed gives the same file."""

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import torch

from tests.trust.whole_programs.blocks import draw, indented
from tests.trust.whole_programs.body import Body
from tests.trust.whole_programs.classes import attributes, methods
from tests.trust.whole_programs.head import HEAD
from tests.trust.whole_programs.specs import WIDTH, Spec, comment, flags, inputs, parameters, spec

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
    declared = spec(rng, kind)
    name = f"{rng.choice(('mix', 'update', 'block', 'attend', 'project'))}_{number}"
    given = inputs(declared)
    defaults = flags(rng, namespace)
    given |= dict(defaults)
    body = Body(rng, namespace, given)
    for _ in range(rng.randint(3, 9)):
        draw(body)
    lines = [f"# mugraph: {comment(declared)}"]
    lines += rng.choices(([], ["@torch.no_grad()"], ["@counted"]), (10, 1, 1))[0]
    lines += [
        f"def {name}({parameters(rng, list(declared), defaults)}):",
        *_doc(rng),
        *indented(body.lines),
        f"    return {_returned(body)}",
    ]
    text = "\n".join(lines) + "\n"
    _tried(text, namespace, name, declared)
    return text


def _module(rng: random.Random, namespace: dict[str, Any], number: int) -> str:
    kind = rng.choices(("f32", "bf16"), (8, 1))[0]
    declared = spec(rng, kind, module=True)
    name = f"{rng.choice(('Block', 'Mixer', 'Head', 'Gated'))}{number}"
    lines = [f"# mugraph: {comment(declared)}", f"class {name}(nn.Module):", f"    def __init__(self, dim={WIDTH}):"]
    lines += [f"        {line}" for line in ["super().__init__()", *attributes(rng, namespace)]]
    if kind != "f32":
        lines.append("        self.to(torch.bfloat16)")
    lines += ["", "    @property", "    def factor(self):", "        return SCALE * 2"]
    lines += ["", "    @staticmethod", "    def _step_plain(t):", "        return torch.tanh(t) + t"]
    step = _method(rng, namespace, lines, name)
    lines += ["", *step, *methods(rng)]
    model = _instance("\n".join(lines) + "\n", namespace, name)
    given = {"self": model, **inputs(declared)}
    defaults = flags(rng, namespace)
    given |= dict(defaults)
    body = Body(rng, namespace, given)
    for _ in range(rng.randint(3, 9)):
        draw(body)
    decorator = rng.choices(([], ["    @torch.no_grad()"], ["    @counted"]), (10, 1, 1))[0]
    written = [*_doc(rng), *indented(body.lines), f"    return {_returned(body)}"]
    lines += [
        "",
        *decorator,
        f"    def forward({parameters(rng, ['self', *declared], defaults)}):",
        *(f"    {line}" for line in written),
    ]
    text = "\n".join(lines) + "\n"
    _tried(text, namespace, name, declared)
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
    every = [*body.tensors(own=False), *body.integers(), *body.masks()]
    if rng.random() < 0.5:  # what is read of them tells the more
        return f"{{{', '.join(f'{one!r}: {one}' for one in every)}}}"
    return rng.choice(forms)


def _tried(text: str, namespace: dict[str, Any], name: str, declared: Spec) -> None:
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
                results.append(repr(called(**inputs(declared))))
        except Exception as error:
            raise Unusable(f"{error}") from error
    if results[0] != results[1] or "nan" in results[0] or "tensor" not in results[0]:
        raise Unusable("results differ")
