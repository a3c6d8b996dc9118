"""The arguments of a drawn function: their types and shapes, as the comment above it declares them, and its flags."""

from __future__ import annotations

import random
from typing import Any

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "bool": torch.bool}
WIDTH = 8

Spec = dict[str, tuple[str, tuple[int, ...]]]


def spec(rng: random.Random, kind: str, *, module: bool = False) -> Spec:
    """Argument -> type and shape, of rows of WIDTH."""
    lead = rng.choice(((4,), (6,), (2, 4), (3, 4)))
    names = ("x", "y", "mem") if module else ("x", "y", "w", "z")
    count = rng.choice((1, 2, 2)) if module else rng.choice((1, 2, 2, 3))
    made: Spec = {}
    for name in names[:count]:
        made[name] = (kind, (WIDTH, WIDTH) if name == "w" else (*lead, WIDTH))
    if rng.random() < 0.1:
        made["mask"] = ("bool", (*lead, WIDTH))
    if rng.random() < 0.25:
        made["ids"] = ("i64", rng.choice((lead, lead[:1], (5,))))
    return made


def comment(declared: Spec) -> str:
    return ", ".join(f"{name}={kind}[{', '.join(map(str, shape))}]" for name, (kind, shape) in declared.items())


def inputs(declared: Spec) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, (kind, shape) in declared.items():
        made[name] = converted(torch.randn(shape) * (0.3 if name == "w" else 1.0), DTYPES[kind])
    return made


def converted(numbers: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Of normally distributed numbers; whole numbers are indices of a dimension of two, as the smallest is."""
    if kind in (torch.bool, torch.int64):
        return (numbers > 0).to(kind)
    return numbers.to(kind)


def flags(rng: random.Random, namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """Arguments with defaults."""
    found = [("deep", True), ("causal", False), ("bias", None), ("gain", 1.5), ("steps", 2)]
    found.append(("config", namespace["Config"](deep=rng.random() < 0.5)))
    return rng.sample(found, rng.choice((0, 0, 1, 2)))


def parameters(rng: random.Random, names: list[str], defaults: list[tuple[str, Any]]) -> str:
    """As a function declares them; those with defaults by keyword alone at times."""
    star = ["*"] if defaults and rng.random() < 0.3 else []
    return ", ".join([*names, *star, *(f"{name}={default!r}" for name, default in defaults)])
