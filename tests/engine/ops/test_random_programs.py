"""Random small programs, written as torch code over a pool of tensors, keep their numbers through lowering.

Operators are drawn so that shapes fit; the same input may come in again anywhere, which is where axes collide.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable

from tests.engine.ops.harness import check, randn

SHAPES = [(4, 6), (6, 4), (4, 4), (6, 6), (6,), (4, 1), (2, 4, 6), (2, 6, 4), (1, 6), (2, 2, 2, 3)]


def step(rng: random.Random, pool: list[torch.Tensor]) -> torch.Tensor | None:
    """One more value from those of the pool; None where the draw does not fit."""
    x, y = rng.choice(pool), rng.choice(pool)
    shape = tuple(x.shape)
    match rng.randrange(22):
        case 0 | 1 | 2:
            fits = x.dim() > 1 and y.dim() > 1 and x.shape[-1] == y.shape[-2]
            return (x @ y) * 0.3 if fits and (x.dim() == 2 or y.dim() == 2 or x.shape[:-2] == y.shape[:-2]) else None
        case 3:
            return F.linear(x, y) * 0.3 if y.dim() == 2 and x.shape[-1] == y.shape[-1] else None
        case 4:
            return x + y if broadcasts(x, y) else None
        case 5:
            return x * y if broadcasts(x, y) else None
        case 6:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.1)
        case 7:
            return torch.softmax(x, dim=rng.randrange(x.dim()))
        case 8:
            return F.layer_norm(x, shape[-1:], eps=0.1) if shape[-1] > 1 else None
        case 9:
            return x.transpose(-1, rng.randrange(x.dim())) if x.dim() > 1 else None
        case 10:
            views = [s for s in SHAPES if torch.Size(s).numel() == x.numel()]
            return x.reshape(rng.choice(views)) if views else None
        case 11:
            return x.sum(rng.randrange(x.dim()), keepdim=rng.random() < 0.5) if x.dim() > 1 else None
        case 12:
            return F.silu(x)
        case 13:
            return 1.5 - x / (y * y + 1.0) if broadcasts(x, y) else None
        case 14:
            return x.unsqueeze(rng.randrange(x.dim() + 1)) if x.dim() < 3 else None
        case 15:
            dim = rng.randrange(x.dim())
            first = rng.randrange(shape[dim])
            return x.narrow(dim, first, rng.randint(1, shape[dim] - first))
        case 16:
            dim = rng.randrange(x.dim())
            return rng.choice(x.chunk(2, dim)) if shape[dim] % 2 == 0 else None
        case 17:
            dim = rng.randrange(x.dim())
            fits = x.dim() == y.dim() and all(
                a == b for i, (a, b) in enumerate(zip(shape, y.shape, strict=True)) if i != dim
            )
            return torch.cat((x, y), dim) if fits else None
        case 18:
            if shape[-1] % 2:
                return None
            one, other = x.chunk(2, -1)
            return torch.cat((-other, one), -1)
        case 19:
            return torch.stack((x, y), -1) if x.shape == y.shape and x.dim() < 3 else None
        case 20:
            return F.rms_norm(x, shape[-1:], eps=0.1) if shape[-1] > 1 else None
        case _:
            return x.repeat_interleave(2, dim=0).view(2, *shape) if shape[0] == 2 and x.dim() == 2 else None


def broadcasts(x: torch.Tensor, y: torch.Tensor) -> bool:
    return all(a == b or a == 1 or b == 1 for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False))


def outcome(seed: int) -> str:
    """Draw one program, lower it, compare; what came of it."""
    rng = random.Random(seed)
    inputs = {name: randn(*rng.choice(SHAPES), seed=seed + i) for i, name in enumerate("abc")}
    length = rng.randrange(2, 7)
    state = rng.getstate()

    def program(**tensors: torch.Tensor) -> torch.Tensor:
        rng.setstate(state)  # the same draws each time it runs
        pool, last, made = list(tensors.values()), None, 0
        for _ in range(200):
            value = step(rng, pool)
            if value is not None and value.dim() <= 4 and value.numel() <= 2000:
                pool.append(value)
                last, made = value, made + 1
                if made == length:
                    break
        assert last is not None
        return last

    try:
        check(program, inputs)
    except Duplicated:
        return "duplicated"
    except NotLowerable as refusal:
        return str(refusal)
    return "equal"


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block: int) -> None:
    seen = Counter(outcome(1000 * block + n) for n in range(60))
    allowed = ("equal", "duplicated", "an output", "the sizes of a view")
    assert all(name.startswith(allowed) for name in seen), seen
    assert seen["equal"] >= 30, seen
