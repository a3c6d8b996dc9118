"""Random small einsum programs over the Lax fragment, as PyTorch source text; no two alike.

Axes that are both bound and free are what they are for: tied weights, `x @ x.mT`, keys and values from the queries' own
rows, one input in several roles, square matrices, equal extents that are not one axis, extents of 1.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

import pytest
import torch
import torch.nn.functional as F

MOST, LEAST = 1e3, 1e-6
"""Magnitude of a value's largest element: outside of it float64 has too few digits left to compare by."""
_LARGEST_LOGIT = 50.0
"""exp is taken of it as it is."""
LARGEST = 400
"""Elements of any value."""
_REDUCING = ("@", "einsum", "linear", "attention", "softmax", "sum", "mean")
"""What a program without any of it has nothing to search for."""
_SIGNED, _KEPT, _POSITIVE = "signed", "kept", "positive"


@dataclass(frozen=True, slots=True)
class Form:
    """One statement. text: an expression over operands p, q and r, with dimensions {i}, {j} and einsum indices {e}.

    sign: of the result: positive whatever the operands, positive where all of them are, or not known
    needs_positive: it takes the root of its last operand or divides by it
    logits: what it takes exp of, if it does
    """

    weight: int
    text: str
    sign: str = _SIGNED
    needs_positive: bool = False
    logits: str = ""


FORMS = (
    Form(6, "(p @ q) * 0.4", _KEPT),
    Form(6, "(p @ q.mT) * 0.4", _KEPT),
    Form(4, "(p.mT @ q) * 0.4", _KEPT),
    Form(3, "(p @ p.mT) * 0.4"),
    Form(2, "(p.mT @ p) * 0.4"),
    Form(3, "(p @ q) @ q.mT * 0.2"),
    Form(2, "(p @ q.mT) @ q * 0.2"),
    Form(3, "p + (p @ q) @ q.mT * 0.2"),
    Form(2, "F.linear(p, q) * 0.4", _KEPT),
    Form(1, "F.linear(p, q, r) * 0.4"),
    Form(4, 'torch.einsum("{e}", p, q) * 0.4', _KEPT),
    Form(2, 'torch.einsum("{e}", p, p) * 0.4'),
    Form(2, 'torch.einsum("{e}", p, q, r) * 0.3', _KEPT),
    Form(3, "torch.softmax(p @ q.mT * 0.5, dim=-1) @ r", logits="p @ q.mT * 0.5"),
    Form(2, "torch.softmax(p @ p.mT * 0.5, dim=-1) @ p", logits="p @ p.mT * 0.5"),
    Form(2, "torch.softmax(p @ q.mT * 0.5, dim=-1) @ q", logits="p @ q.mT * 0.5"),
    Form(1, "F.scaled_dot_product_attention(p, q, q)", logits="p @ q.mT"),
    Form(2, "torch.softmax(p, dim={i})", _POSITIVE, logits="p * 1.0"),
    Form(2, "torch.exp(p * 0.5)", _POSITIVE, logits="p * 0.5"),
    Form(3, "p.sum({i})", _KEPT),
    Form(3, "p.sum({i}, keepdim=True)", _KEPT),
    Form(2, "p.mean({i})", _KEPT),
    Form(3, "p.mean({i}, keepdim=True)", _KEPT),
    Form(1, "p.sum(({i}, {j}))", _KEPT),
    Form(1, "p.mean(({i}, {j}), keepdim=True)", _KEPT),
    Form(5, "p + q", _KEPT),
    Form(2, "p - q"),
    Form(2, "p - p.mean({i}, keepdim=True)"),
    Form(5, "p * q", _KEPT),
    Form(2, "p * p", _KEPT),
    Form(1, "p * 1.5 - 0.25"),
    Form(3, "p / (q * q + 1.0)", _KEPT),
    Form(2, "p / (q + 0.5)", _KEPT, needs_positive=True),
    Form(2, "p / p.sum({i}, keepdim=True)", _KEPT, needs_positive=True),
    Form(2, "torch.sqrt(p * p + q * q + 0.5)", _POSITIVE),
    Form(1, "torch.sqrt((p * p).sum({i}) + 0.1)", _POSITIVE),
    Form(1, "torch.sqrt((p * p).mean({i}, keepdim=True))", _KEPT),
    Form(2, "torch.sqrt(p)", _POSITIVE, needs_positive=True),
    Form(3, "p * torch.rsqrt((p * p).mean({i}, keepdim=True) + 0.1)", _KEPT),
    Form(3, "F.silu(p)", _KEPT),
    Form(3, "p.transpose({i}, {j})", _KEPT),
    Form(1, "p.flatten(0, 1)", _KEPT),
    Form(2, "p.unsqueeze({i})", _KEPT),
    Form(1, "p[:, None] - q[None]"),
    Form(1, "p[:, None] * q[None]", _KEPT),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of a value while a program grows. statement: None for an input."""

    tensor: torch.Tensor
    positive: bool
    exps: int
    statement: tuple[str, tuple[int, ...]] | None = None


@dataclass(frozen=True)
class EinsumProgram:
    """inputs: by name, float64 of both signs. body: statements; the last value is returned. Names go by the order in
    which things are met, so that two programs with one body differ in sizes alone."""

    name: str
    inputs: Mapping[str, torch.Tensor]
    body: tuple[str, ...]

    @property
    def source(self) -> str:
        """A function with a comment that says its shapes, as mugraph reads it."""
        shapes = [f"{name}=f32[{', '.join(map(str, tensor.shape))}]" for name, tensor in self.inputs.items()]
        lines = "".join(f"    {line}\n" for line in self.body)
        return f"# mugraph: {', '.join(shapes)}\ndef {self.name}({', '.join(self.inputs)}):\n{lines}"


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<form>", "eval")


def _evaluated(text: str, operands: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The expression's value; None where the shapes do not fit, or it is too large."""
    names = dict(zip("pqr", operands, strict=False))
    try:
        result: torch.Tensor = eval(_compiled(text), {"torch": torch, "F": F, **names})
    except (RuntimeError, IndexError):
        return None
    if not 0 < result.dim() < 4 or result.numel() > LARGEST or result.numel() == 1:
        return None
    return result if bool(result.isfinite().all()) and LEAST < result.abs().max() < MOST else None


def _indices(rng: random.Random, operands: Sequence[torch.Tensor]) -> str:
    """Einsum indices for the operands: equal letters only where extents are equal, each operand's all different."""
    sizes: dict[str, int] = {}
    specs: list[str] = []
    for operand in operands:
        spec = ""
        for size in operand.shape:
            known = [letter for letter, extent in sizes.items() if extent == size and letter not in spec]
            letter = rng.choice(known) if known and rng.random() < 0.7 else "ijklmnopqrst"[len(sizes)]
            sizes[letter] = size
            spec += letter
        specs.append(spec)
    kept = [letter for letter in sizes if rng.random() < 0.5] or [next(iter(sizes))]
    rng.shuffle(kept)
    return f"{','.join(specs)}->{''.join(kept[:3])}"


def _step(rng: random.Random, pool: Sequence[_Value]) -> _Value | None:
    """One more value from those of the pool; None where the draw does not fit."""
    form = rng.choices(FORMS, [form.weight for form in FORMS])[0]
    arity = 1 + max("pqr".index(letter) for letter in "pqr" if _uses(form.text, letter))
    # the latest values more often: long chains, and still every input in several roles
    chosen = [rng.randrange(max(0, len(pool) - 3), len(pool)) if rng.random() < 0.5 else rng.randrange(len(pool))
              for _ in range(arity)]  # fmt: skip
    values = [pool[number] for number in chosen]
    if form.needs_positive and not values[-1].positive:
        return None
    exps = max(value.exps for value in values) + bool(form.logits)
    rank = values[0].tensor.dim()
    if exps > 1 or ("{j}" in form.text and rank < 2):
        return None
    text = form.text
    if "{i}" in text:
        i, j = rng.sample(range(rank), 2) if rank > 1 else (0, 0)
        text = text.replace("{i}", str(min(i, j))).replace("{j}", str(max(i, j)))
    if "{e}" in text:
        given = [values[0], values[0]] if "p, p" in text else values
        text = text.replace("{e}", _indices(rng, [value.tensor for value in given]))
    tensors = [value.tensor for value in values]
    tensor = _evaluated(text, tensors)
    if tensor is None:
        return None
    if form.logits:
        logits = _evaluated(form.logits, tensors)
        if logits is None or logits.abs().max() > _LARGEST_LOGIT:
            return None
    positive = form.sign == _POSITIVE or (form.sign == _KEPT and all(value.positive for value in values))
    return _Value(tensor, positive, exps, (text, tuple(chosen)))


@cache
def _parts(text: str) -> tuple[str, ...]:
    """The text with operands apart: names of one letter between others."""
    parts, word = [], ""
    for letter in text:
        if letter.isidentifier() or letter.isdigit():
            word += letter
            continue
        parts += [word, letter]
        word = ""
    return (*parts, word)


def _uses(text: str, name: str) -> bool:
    return name in _parts(text)


def _spelled(text: str, names: Mapping[str, str]) -> str:
    quoted = text.split('"')  # einsum's indices are no operands
    quoted[::2] = ["".join(names.get(part, part) for part in _parts(piece)) for piece in quoted[::2]]
    return '"'.join(quoted)


def _written(name: str, pool: Sequence[_Value]) -> EinsumProgram | None:
    """The program that returns the last value, without what is of no use to it; None where little is left."""
    live = {len(pool) - 1}
    for number in range(len(pool) - 1, -1, -1):
        statement = pool[number].statement
        if number in live and statement is not None:
            live.update(statement[1])
    order: dict[int, str] = {}  # values in the order in which they are met, inputs among them
    inputs: dict[str, torch.Tensor] = {}
    body: list[str] = []
    for number in sorted(live):
        statement = pool[number].statement
        if statement is None:
            continue
        text, operands = statement
        for operand in operands:
            if operand not in order:
                order[operand] = "xyzw"[len(inputs)]
                inputs[order[operand]] = pool[operand].tensor
        line = _spelled(text, dict(zip("pqr", (order[operand] for operand in operands), strict=False)))
        order[number] = f"v{len(body)}"
        body.append(f"{order[number]} = {line}")
    if not any(word in line for line in body for word in _REDUCING):
        return None
    body[-1] = f"return {body[-1].partition(' = ')[2]}"
    return EinsumProgram(name, inputs, tuple(body))


def _drawn(seed: int) -> EinsumProgram | None:
    rng = random.Random(seed)
    extents = [rng.choice((2, 3, 4, 5, 6)) for _ in range(rng.randint(1, 3))]
    pick = [*extents, *extents, *([1] if rng.random() < 0.25 else [])]
    pool: list[_Value] = []
    for _ in range(rng.randint(1, 4)):
        shape = tuple(rng.choice(pick) for _ in range(rng.choice((1, 2, 2, 2, 2, 3))))
        if math.prod(shape) > 1:
            generator = torch.Generator().manual_seed(seed + len(pool))
            pool.append(_Value(torch.randn(shape, generator=generator, dtype=torch.float64), False, 0))
    if not pool:
        return None
    made, wanted = 0, rng.choice((1, 2, 2, 3, 3, 4, 5))
    for _ in range(40 * wanted):
        value = _step(rng, pool)
        if value is not None:
            pool.append(value)
            made += 1
        if made == wanted:
            break
    return _written(f"program_{seed}", pool) if made else None


@cache
def programs(count: int) -> tuple[EinsumProgram, ...]:
    """So many, each with a body of its own."""
    found: dict[tuple[str, ...], EinsumProgram] = {}
    for seed in itertools.count():
        program = _drawn(seed)
        if program is not None:
            found.setdefault(program.body, program)
        if len(found) == count:
            return tuple(found.values())
    raise AssertionError("unreachable")


def chunks(count: int, first: int) -> list[Any]:
    """Numbers of chunks; those after the first are further draws."""
    return [pytest.param(chunk, marks=[] if chunk < first else [pytest.mark.more]) for chunk in range(count)]
