"""Every call that has a rule, with random shapes and arguments: lowered, it computes in float64 what PyTorch does."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from harness import DTYPES, NOWHERE, evaluate, parts, well_formed
from mugraph.ops.registry import NotLowerable, known_targets
from mugraph.trace.lower import lower
from mugraph.trace.region import Argument, Call, Named, Ref, Symbol, TensorInfo
from mugraph.trace.replay import NotReplayable, function_of, replay
from mugraph.trace.triangles import triangle_of

DRAWS = 12
Rng = random.Random


@dataclass(frozen=True)
class T:
    """A tensor argument: normal numbers, or positive ones. exact: numbers that every float type holds."""

    shape: tuple[int, ...]
    positive: bool = False
    exact: bool = False

    def make(self) -> torch.Tensor:
        if self.exact:
            return torch.randint(-8, 9, self.shape) / 4
        tensor = torch.randn(self.shape)
        return tensor.abs() + 0.5 if self.positive else tensor


@dataclass(frozen=True)
class Lower:
    """A condition that is constant: true up to a diagonal (or from there on)."""

    shape: tuple[int, ...]
    diagonal: int
    upper: bool = False

    def make(self) -> torch.Tensor:
        ones = torch.ones(self.shape, dtype=torch.bool)
        return ones.triu(self.diagonal) if self.upper else ones.tril(self.diagonal)


@dataclass(frozen=True)
class Drawn:
    """results: tensors that the call returns, of which one is `taken`; 0 for one that is no tuple. summed: over
    everything, at the end."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: int = 0
    taken: int = 0
    summed: bool = False


def drawn(*args: Any, **kwargs: Any) -> Drawn:
    return Drawn(args, kwargs)


def shape(rng: Rng, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(least, most)))


def broadcast(rng: Rng, of: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `of`."""
    kept = of[rng.randint(0, len(of)) :] if rng.random() < 0.5 else of
    return tuple(1 if rng.random() < 0.3 else size for size in kept)


def number(rng: Rng) -> float | int:
    return rng.choice((2, -1, 0.5, -1.5, 3, 0, 1))


def some(rng: Rng, **choices: Any) -> dict[str, Any]:
    """Each keyword, or not."""
    return {name: value for name, value in choices.items() if rng.random() < 0.5}


# --- families -------------------------------------------------------------------------------------------------------


def unary(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 0)))


def positive(rng: Rng) -> Drawn:
    return drawn(T(shape(rng), positive=True))


def inplace_option(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, inplace=False))


def two_tensors(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), T(broadcast(rng, of)))


def largest(rng: Rng) -> Drawn:
    of = shape(rng)
    dims = sorted({rng.randrange(len(of)) for _ in range(2)})
    return drawn(T(of), rng.choice((dims, dims[0], dims[-1] - len(of))), **some(rng, keepdim=rng.random() < 0.5))


def largest_or_larger(rng: Rng) -> Drawn:
    """Along a dimension there are two results: test_lowering.py."""
    return two_tensors(rng) if rng.random() < 0.5 else drawn(T(shape(rng)))


def limits(*names: str) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        of = shape(rng)
        tensors = rng.random() < 0.4
        given = {name: T(broadcast(rng, of)) if tensors else number(rng) for name in names}
        if len(names) > 1 and rng.random() < 0.5:
            del given[rng.choice(names)]
        return drawn(T(of), **given)

    return draw


def hardtanh(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, min_val=-0.5, max_val=rng.choice((0.25, 2.0)), inplace=False))


def leaky_relu(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, negative_slope=rng.choice((0.0, 0.2, 1.0)), inplace=False))


def gelu(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, approximate=rng.choice(("none", "tanh"))))


def binary(rng: Rng) -> Drawn:
    of = shape(rng)
    other = number(rng) if rng.random() < 0.3 else T(broadcast(rng, of))
    return drawn(T(of), other)


def scaled(rng: Rng) -> Drawn:
    args = binary(rng).args
    return drawn(*args, **some(rng, alpha=number(rng)))


def quotient(rng: Rng) -> Drawn:
    of = shape(rng)
    other = rng.choice((2, -4, 0.5)) if rng.random() < 0.3 else T(broadcast(rng, of), positive=True)
    return drawn(T(of, positive=True), other)


def quotient_option(rng: Rng) -> Drawn:
    return drawn(*quotient(rng).args, **some(rng, rounding_mode=None))


def power(rng: Rng) -> Drawn:
    return drawn(T(shape(rng), positive=True), rng.choice((0, 1, 2, 3, 5, -1, -2, 0.5, 1.5, -0.5, 2.5, True)))


def three(rng: Rng) -> Drawn:
    of = shape(rng)
    args = (T(of), T(broadcast(rng, of), positive=True), T(broadcast(rng, of), positive=True))
    return drawn(*args, **some(rng, value=number(rng)))


def lerp(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), T(of), rng.choice((0.3, T(of))))


def dropout(rng: Rng) -> Drawn:
    of = (2, 3, 4)
    return rng.choice((drawn(T(of), 0.3, False), drawn(T(of), p=0.0), drawn(T(of), training=False)))


def plain_dropout_of_images(rng: Rng) -> Drawn:
    return drawn(T((2, 3, 4, 2)), 0.3, False)


def plain_dropout(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), 0.3, False)


def product(rng: Rng) -> Drawn:
    m, k, n = (rng.choice((1, 2, 3, 5)) for _ in range(3))
    batch = shape(rng, 0, 2)
    left = (*broadcast(rng, batch), m, k) if rng.random() < 0.7 else (k,)
    right = (*batch, k, n) if rng.random() < 0.7 else (k,)
    return drawn(T(left), T(right))


def reflected_product(rng: Rng) -> Drawn:
    return drawn(*reversed(product(rng).args))


def matrices(rng: Rng) -> Drawn:
    m, k, n = (rng.choice((1, 2, 3, 5)) for _ in range(3))
    return drawn(T((m, k)), T((k, n)))


def batches(rng: Rng) -> Drawn:
    b, m, k, n = (rng.choice((1, 2, 3, 5)) for _ in range(4))
    return drawn(T((b, m, k)), T((b, k, n)))


def matrix_vector(rng: Rng) -> Drawn:
    m, k = rng.choice((1, 2, 5)), rng.choice((1, 3))
    return drawn(T((m, k)), T((k,)))


def vectors(rng: Rng) -> Drawn:
    k = rng.choice((1, 3, 4))
    return drawn(T((k,)), T((k,)))


def outer(rng: Rng) -> Drawn:
    return drawn(T((rng.choice((1, 3)),)), T((rng.choice((1, 4)),)))


def linear(rng: Rng) -> Drawn:
    k, n = rng.choice((1, 3, 4)), rng.choice((1, 2, 5))
    if rng.random() < 0.2:
        return drawn(T((*shape(rng, 0, 2), k)), T((k,)))
    return drawn(T((*shape(rng, 0, 2), k)), T((n, k)), *([T((n,))] if rng.random() < 0.5 else []))


def added_product(kind: Callable[[Rng], Drawn]) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        a, b = kind(rng).args
        of = (*a.shape[:-1], *b.shape[-1:]) if len(b.shape) > 1 else a.shape[:-1]
        return drawn(T(broadcast(rng, of)), a, b, **some(rng, alpha=number(rng), beta=number(rng)))

    return draw


EQUATIONS: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))), ("kj,ji", ((2, 3), (3, 4))),
    ("ij->ji", ((2, 3),)), ("ba", ((2, 3),)), ("ij->", ((2, 3),)), ("i,j->ij", ((2,), (3,))),
    ("...ij,...jk->...ik", ((5, 2, 3), (3, 4))), ("...ij,...jk", ((5, 2, 3), (6, 5, 3, 4))),
    ("...i->...", ((4, 2, 3),)), ("...i,i", ((4, 2, 3), (3,))), ("...i->i", ((4, 2, 3),)),
    ("ij,ij->i", ((2, 1), (2, 3))), ("ij,jk->ik", ((2, 1), (3, 4))), ("ij,j->", ((2, 3), (1,))),
    ("bi,bj,bk->ijk", ((2, 3), (2, 4), (2, 5))), ("Aa,aB->AB", ((2, 3), (3, 4))), ("aB,BC", ((2, 3), (3, 4))),
    (" i j , j k -> i k ", ((2, 3), (3, 4))), ("ij,kl->il", ((2, 3), (4, 5))), ("a,ab,b", ((2,), (2, 3), (3,))),
    ("ab,bc,cd,da->", ((2, 3), (3, 4), (4, 5), (5, 2))), ("...,...->...", ((2, 3), (3,))),
)  # fmt: skip


def einsum(rng: Rng) -> Drawn:
    equation, shapes = rng.choice(EQUATIONS)
    operands = tuple(T(of) for of in shapes)
    return drawn(equation, operands) if rng.random() < 0.3 else drawn(equation, *operands)


def convolution(rank: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        c, o = rng.choice((1, 3)), rng.choice((1, 2, 4))
        space = tuple(rng.choice((1, 2, 4)) for _ in range(rank))
        x = T((*((2,) if rng.random() < 0.7 else ()), c, *space))
        weight = T((o, c, *([1] * rank)))
        bias = rng.choice((None, T((o,))))
        return drawn(x, weight, bias, **some(rng, stride=1, padding=0, dilation=2, groups=1))

    return draw


def reduction(rng: Rng) -> Drawn:
    of = shape(rng)
    kind = rng.randrange(4)
    keep = some(rng, keepdim=rng.random() < 0.5)
    if kind == 0:
        return drawn(T(of), **some(rng, dtype=torch.float32))
    one = rng.randrange(-len(of), len(of))
    if kind == 1:
        return drawn(T(of), one, **keep)
    if kind == 2:
        return drawn(T(of), **{rng.choice(("dim", "axis")): one}, **keep)
    several = tuple(rng.sample(range(len(of)), rng.randint(0, len(of))))
    return drawn(T(of), dim=tuple(i - len(of) if rng.random() < 0.5 else i for i in several), **keep)


def variance(rng: Rng) -> Drawn:
    of = tuple(rng.choice((2, 3, 5)) for _ in range(rng.randint(1, 3)))
    dim = rng.randrange(-len(of), len(of))
    return rng.choice((
        drawn(T(of)), drawn(T(of), False), drawn(T(of), True), drawn(T(of), unbiased=False), drawn(T(of), dim),
        drawn(T(of), dim, False), drawn(T(of), (dim,), True, True), drawn(T(of), dim=dim, correction=0),
        drawn(T(of), dim=None, correction=0.5, keepdim=True), drawn(T(of), correction=None),
    ))  # fmt: skip


def vector_norm(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), **some(rng, ord=2, dim=rng.randrange(-len(of), len(of)), keepdim=True))


def old_norm(rng: Rng) -> Drawn:
    of = shape(rng)
    dim = rng.choice((rng.randrange(-len(of), len(of)), tuple(range(len(of)))[:2]))
    return drawn(T(of), **some(rng, p=rng.choice((2, "fro", 2.0)), dim=dim))


def matrix_norm(rng: Rng) -> Drawn:
    of = shape(rng, 1, 3)
    return rng.choice((
        drawn(T(of)), drawn(T(of), None, rng.randrange(len(of))), drawn(T(of), 2, rng.randrange(len(of))),
        drawn(T((3, 4)), "fro"), drawn(T((2, 3, 4)), "fro", (0, 2)), drawn(T((2, 3, 4)), dim=(-1, 0), keepdim=True),
        drawn(T((3, 4)), 2), drawn(T((2, 3, 4)), 2, (0, 1)),
    ))  # fmt: skip


def tail(rng: Rng) -> tuple[tuple[int, ...], tuple[int, ...]]:
    of = tuple(rng.choice((2, 3, 5)) for _ in range(rng.randint(1, 4)))
    return of, of[rng.randrange(len(of)) :]


def rms_norm(rng: Rng) -> Drawn:
    of, inner = tail(rng)
    return drawn(T(of), inner, rng.choice((None, T(inner))), **some(rng, eps=rng.choice((1e-3, None))))


def layer_norm(rng: Rng) -> Drawn:
    of, inner = tail(rng)
    return drawn(T(of), inner, rng.choice((None, T(inner))), rng.choice((None, T(inner))), **some(rng, eps=0.1))


def batch_norm(rng: Rng) -> Drawn:
    of = (2, 3, *shape(rng, 0, 2))
    affine = [rng.choice((None, T((3,)))) for _ in range(2)]
    return drawn(T(of), T((3,)), T((3,), positive=True), *affine, False, **some(rng, momentum=0.5, eps=1e-2))


def group_norm(rng: Rng) -> Drawn:
    of = (2, 6, *shape(rng, 0, 2))
    affine = [rng.choice((None, T((6,)))) for _ in range(2)]
    return drawn(T(of), rng.choice((1, 2, 3)), *affine, **some(rng, eps=1e-2))


def instance_norm(rng: Rng) -> Drawn:
    of = (2, 3, 4, *shape(rng, 0, 1))
    if rng.random() < 0.5:
        return drawn(T(of), **some(rng, eps=1e-2))
    return drawn(T(of), T((3,)), T((3,), positive=True), T((3,)), T((3,)), False)


def normalize(rng: Rng) -> Drawn:
    of = shape(rng, 2)
    return drawn(T(of), **some(rng, p=2.0, dim=rng.randrange(-len(of), len(of)), eps=rng.choice((1.5, 1e-6, 0.0))))


def softmax(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), rng.randrange(-len(of), len(of)), **some(rng, dtype=torch.float32))


def old_softmax(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), **some(rng, dim=rng.randrange(-len(of), len(of)), _stacklevel=5))


def attention(rng: Rng) -> Drawn:
    b, s, t, d, e = (rng.choice((1, 2, 3)) for _ in range(5))
    heads, kv = rng.choice(((1, 1), (4, 2), (6, 1), (3, 3)))
    options = some(rng, scale=0.3, dropout_p=0.0, is_causal=rng.random() < 0.5, attn_mask=None)
    if heads == kv and rng.random() < 0.5:
        batch = shape(rng, 0, 2)
        return drawn(T((*batch, s, d)), T((*broadcast(rng, batch), t, d)), T((*batch, t, e)), **options)
    q, k, v = T((b, heads, s, d)), T((b, kv, t, d)), T((b, kv, t, e))
    return drawn(q, k, v, enable_gqa=True, **options)


def condition(rng: Rng, of: tuple[int, ...]) -> Lower:
    of = of if rng.random() < 0.5 else of[-2:]
    return Lower(of, rng.randrange(-1, 2), rng.random() < 0.5)


def masked_fill(rng: Rng) -> Drawn:
    of = (*shape(rng, 0, 2), rng.choice((3, 4)), rng.choice((3, 5)))
    return drawn(T(of), condition(rng, of), **rng.choice(({"value": 0.0}, {"value": 0})))


def where(rng: Rng) -> Drawn:
    of = (*shape(rng, 0, 2), rng.choice((3, 4)), rng.choice((3, 5)))
    x = T(broadcast(rng, of))
    return drawn(Lower(of, rng.randrange(-1, 2)), *rng.choice(((x, 0.0), (0.0, x))))


def triangular(rng: Rng) -> Drawn:
    of = shape(rng, 2)
    return rng.choice((drawn(T(of)), drawn(T(of), rng.randrange(-2, 3)), drawn(T(of), diagonal=1)))


def view(rng: Rng) -> Drawn:
    return rng.choice((
        drawn(T((4, 6)), 2, 2, -1), drawn(T((4, 6)), (24,)), drawn(T((4, 6)), [2, 12]), drawn(T((2, 3, 4)), 6, 4),
    ))  # fmt: skip


def reshape(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((4, 6)), (2, -1)), drawn(T((4, 6)), shape=(8, 3)), drawn(T((1, 6)), (6,))))


def as_other(rng: Rng) -> Drawn:
    return drawn(T((4, 6)), T((2, 2, 6)))


def flatten(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((2, 3, 4))), drawn(T((2, 3, 4)), 1), drawn(T((2, 3, 4)), start_dim=0, end_dim=-2)))


def unflatten(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((4, 6)), 1, (2, 3)), drawn(T((4, 6)), -2, (-1, 2))))


def unsqueeze(rng: Rng) -> Drawn:
    of = shape(rng, 1, 3)
    at = rng.randrange(-len(of) - 1, len(of) + 1)
    return rng.choice((drawn(T(of), at), drawn(T(of), dim=at)))


def squeeze(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((1, 3, 1))), drawn(T((1, 3, 1)), -1), drawn(T((1, 3, 1)), dim=1),
                       drawn(T((1, 3, 1)), (0, 2))))  # fmt: skip


def casts(*others: Any) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        args, kwargs = rng.choice(others or (((), {}),))
        return drawn(T(shape(rng), exact=True), *args, **kwargs)

    return draw


to = casts(
    ((torch.float32,), {}), ((), {"dtype": torch.float32}), (("cpu",), {}), ((torch.float32, True), {}),
    ((T((2,)),), {}), ((torch.float16,), {}), ((), {"dtype": torch.bfloat16, "copy": True}),
)  # fmt: skip


def transpose(rng: Rng) -> Drawn:
    of = shape(rng, 1)
    i, j = (rng.randrange(-len(of), len(of)) for _ in range(2))
    return drawn(T(of), i, j)


def matrix(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 2, 2)))


def at_least_matrix(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 2)))


def permute(rng: Rng) -> Drawn:
    of = shape(rng)
    order = tuple(rng.sample(range(len(of)), len(of)))
    order = tuple(i - len(of) if rng.random() < 0.3 else i for i in order)
    return drawn(T(of), order)


def movedim(rng: Rng) -> Drawn:
    of = shape(rng, 3, 4)
    count = rng.randint(1, 3)
    ends = [tuple(rng.sample(range(len(of)), count)) for _ in range(2)]
    return drawn(T(of), *ends) if rng.random() < 0.5 else drawn(T(of), ends[0][0] - len(of), ends[1][0])


def expand(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 1)), 2, -1, 4), drawn(T((1, 4)), (3, 4)), drawn(T((4,)), (3, -1))))


def broadcast_to(rng: Rng) -> Drawn:
    return drawn(T((3, 1)), rng.choice(((3, 4), (2, 3, 4))))


def expand_as(rng: Rng) -> Drawn:
    return drawn(T((3, 1)), T((2, 3, 4)))


def repeat_interleave(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), rng.choice((1, 2, 3)), **some(rng, dim=rng.randrange(-len(of), len(of))))


def repeat(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 4)), 2, 1), drawn(T((3, 4)), (2, 1, 3)), drawn(T((1, 4)), 3, 2)))


def tile(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 4)), (2,)), drawn(T((3, 4)), (2, 1, 3)), drawn(T((4,)), (2, 3))))


def getitem(rng: Rng) -> Drawn:
    whole = slice(None)
    index = rng.choice((
        None, (whole, None), (Ellipsis, None), (None, Ellipsis, 0), (whole, slice(0, 4), 0), (slice(0, 99), Ellipsis),
        (Ellipsis, -1), (whole, whole, whole), (), slice(None, None, 1), (1, slice(1, 3)), (slice(1, 3), None, 2),
        (Ellipsis, slice(1, None, 2), 0), slice(-1, None), (-2, Ellipsis, None), (slice(None, None, 2), slice(2)),
    ))  # fmt: skip
    return drawn(T((3, 4, 1)), index)


def narrow(rng: Rng) -> Drawn:
    start = rng.randint(-6, 4)
    return drawn(T((3, 6)), 1, start, rng.randint(1, 6 - start % 6))


def select(rng: Rng) -> Drawn:
    return drawn(T((3, 6)), rng.choice((-1, 1)), rng.randint(-6, 5))


def several(rng: Rng, results: int, *args: Any, **kwargs: Any) -> Drawn:
    return Drawn(args, kwargs, results, rng.randrange(results))


def chunk(rng: Rng) -> Drawn:
    count = rng.randint(1, 5)
    return several(rng, len(torch.empty(6).chunk(count)), T((2, 6)), count, dim=-1)


def split(rng: Rng) -> Drawn:
    if rng.random() < 0.5:
        return several(rng, 3, T((6, 2)), (1, 3, 2))
    size = rng.randint(1, 7)
    return several(rng, -(-6 // size), T((2, 6)), size, rng.choice((1, -1)))


def split_with_sizes(rng: Rng) -> Drawn:
    return several(rng, 3, T((2, 6)), (4, 1, 1), 1)


def tensor_split(rng: Rng) -> Drawn:
    return several(rng, 3, T((2, 7)), rng.choice((3, (2, 5))), dim=1)


def unbind(rng: Rng) -> Drawn:
    return several(rng, 3, T((3, 4))) if rng.random() < 0.5 else several(rng, 4, T((3, 4)), -1)


def cat(rng: Rng) -> Drawn:
    tensors = tuple(T((2, rng.choice((2, 4, 6)))) for _ in range(rng.randint(1, 3)))
    return Drawn((tensors,), {rng.choice(("dim", "axis")): rng.choice((1, -1))}, summed=True)


def stack(rng: Rng) -> Drawn:
    return Drawn((tuple(T((2, 3)) for _ in range(rng.randint(1, 4))), rng.randint(-3, 2)), {}, summed=True)


FAMILIES: dict[str, Callable[[Rng], Drawn]] = {
    **dict.fromkeys(["neg", "negative", "positive", "pos", "square", "exp", "exp2"], unary),
    **dict.fromkeys(["relu", "sigmoid", "tanh", "expit", "abs", "absolute", "erf"], unary),
    **dict.fromkeys(["sqrt", "rsqrt", "reciprocal"], positive),
    **dict.fromkeys(["add", "radd", "iadd", "sub", "subtract", "isub", "rsub"], scaled),
    **dict.fromkeys(["mul", "rmul", "imul", "multiply"], binary),
    **dict.fromkeys(["truediv", "true_divide", "itruediv", "rtruediv", "rdiv", "idiv"], quotient),
    **dict.fromkeys(["div", "divide"], quotient_option),
    "maximum": two_tensors, "minimum": two_tensors, "max": largest_or_larger, "min": largest_or_larger,
    "amax": largest, "amin": largest, "clamp": limits("min", "max"), "clip": limits("min", "max"),
    "clamp_min": limits("min"), "clamp_max": limits("max"), "hardtanh": hardtanh, "leaky_relu": leaky_relu,
    **dict.fromkeys(["relu6", "hardsigmoid", "hardswish"], inplace_option),
    "pow": power, "addcmul": three, "addcdiv": three, "lerp": lerp, "silu": inplace_option, "gelu": gelu,
    "dropout": dropout, "dropout1d": dropout, "dropout2d": dropout, "alpha_dropout": plain_dropout,
    "matmul": product, "rmatmul": reflected_product, "mm": matrices, "bmm": batches, "mv": matrix_vector,
    "dot": vectors, "outer": outer, "ger": outer, "linear": linear, "addmm": added_product(matrices),
    "baddbmm": added_product(batches), "addmv": added_product(matrix_vector), "einsum": einsum,
    "conv1d": convolution(1), "conv2d": convolution(2), "conv3d": convolution(3),
    "sum": reduction, "mean": reduction, "var": variance, "vector_norm": vector_norm, "norm": old_norm,
    "rms_norm": rms_norm, "layer_norm": layer_norm, "batch_norm": batch_norm, "group_norm": group_norm,
    "instance_norm": instance_norm, "normalize": normalize, "softmax": softmax,
    "scaled_dot_product_attention": attention,
    "masked_fill": masked_fill, "where": where, "tril": triangular, "triu": triangular,
    "view": view, "reshape": reshape, "view_as": as_other, "reshape_as": as_other, "flatten": flatten,
    "unflatten": unflatten, "unsqueeze": unsqueeze, "squeeze": squeeze, "ravel": unary,
    "contiguous": casts(), "clone": casts(), "detach": casts(), "float": casts(), "half": casts(),
    "bfloat16": casts(), "cpu": casts(), "to": to, "type": casts(((torch.float32,), {}), ((torch.float16,), {})),
    "type_as": casts(((T((2,)),), {})),
    "transpose": transpose, "swapaxes": transpose, "swapdims": transpose, "T": matrix, "t": matrix,
    "mT": at_least_matrix, "permute": permute, "movedim": movedim, "moveaxis": movedim,
    "expand": expand, "expand_as": expand_as, "broadcast_to": broadcast_to, "repeat": repeat, "tile": tile,
    "repeat_interleave": repeat_interleave, "getitem": getitem, "narrow": narrow, "select": select, "chunk": chunk,
    "split": split, "split_with_sizes": split_with_sizes, "tensor_split": tensor_split, "unbind": unbind,
    "cat": cat, "concat": cat, "concatenate": cat, "stack": stack,
}  # fmt: skip
BY_TARGET = {
    "torch.nn.functional.softmax": old_softmax,
    "torch.linalg.norm": matrix_norm,
    "Tensor.reshape": view,
    "torch.dropout": plain_dropout,
    "torch.nn.functional.dropout2d": plain_dropout_of_images,
    "Tensor.__rsub__": binary,
    "torch.nn.functional.gelu": gelu,
    "torch.nn.functional.relu": inplace_option,
    "torch.nn.functional.hardtanh_": unary,
    "torch.nn.functional.leaky_relu_": unary,
    "Tensor.broadcast_to": broadcast_to,
}
UNTESTABLE = {"Tensor.double", "Tensor.cuda", "torch.logsumexp", "torch.special.logsumexp", "Tensor.logsumexp"}
"""They give a type outside the fragment, need a GPU, and have a meaning under an exponential alone."""
REFUSALS = (
    "the sizes of a view", "a norm that is not Euclidean", "a softmax of one number", "a variance of too few",
    "an output is an input as it is",
)  # fmt: skip


def name_of(target: str) -> str:
    return [part for part in target.split(".") if part != "__get__"][-1].strip("_")


def family(target: str) -> Callable[[Rng], Drawn]:
    return BY_TARGET.get(target) or FAMILIES[name_of(target)]


def exists(target: str) -> bool:
    try:
        function_of(target)
    except NotReplayable:
        return False
    return True


TARGETS = [target for target in known_targets() if target not in UNTESTABLE and exists(target)]


def writes(target: str) -> bool:
    name = target.rpartition(".")[2]
    return name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


@dataclass
class Program:
    """A call on fresh tensors, then a product with a probe of the result's shape: no axis can be confused."""

    tensors: list[torch.Tensor]
    calls: list[Call]
    constants: list[int]

    def argument(self, value: Any) -> Argument:
        if isinstance(value, T | Lower):
            if isinstance(value, Lower):
                self.constants.append(len(self.tensors))
            self.tensors.append(value.make())
            return Ref(len(self.tensors) - 1)
        if isinstance(value, torch.dtype):
            return Symbol(str(value))
        if value is Ellipsis:
            return Symbol("Ellipsis")
        if isinstance(value, tuple | list):
            return tuple(self.argument(item) for item in value)
        return value


def outcome(target: str, rng: Rng) -> str:
    torch.manual_seed(rng.randrange(2**30))
    what = family(target)(rng)
    program = Program([], [], [])
    args = tuple(program.argument(value) for value in what.args)
    kwargs = {name: program.argument(value) for name, value in what.kwargs.items()}
    first, second, last = 100, 101, 102
    if writes(target):
        shapes = [program.tensors[ref.value].shape for ref in args if isinstance(ref, Ref)]
        if torch.broadcast_shapes(*shapes) != shapes[0]:
            return "not in place"
        program.calls.append(Call("Tensor.mul", (args[0], 2.0), {}, (first,), NOWHERE))
        args = (Ref(first), *args[1:])
    outputs = tuple(second if n == what.taken else 200 + n for n in range(what.results)) or (second,)
    program.calls.append(Call(target, args, kwargs, outputs, NOWHERE))
    env = dict(enumerate(program.tensors))
    made = replay(program.calls, env)[second]
    env[len(env)] = torch.randn(made.shape).to(made.dtype)
    program.calls.append(Call("Tensor.mul", (Ref(second), Ref(len(env) - 1)), {}, (last,), NOWHERE))
    if what.summed:
        program.calls.append(Call("torch.sum", (Ref(last),), {}, (last + 1,), NOWHERE))
        last += 1
    results = replay(program.calls, env)
    values = {number: TensorInfo(tuple(t.shape), t.stride(), DTYPES[t.dtype]) for number, t in results.items()}
    for number in program.constants:
        values[number] = replace(values[number], triangle=triangle_of(env[number]))
    live_ins = [Named(f"x{number}", number) for number in env]
    try:
        lowered = lower(program.calls, values, live_ins, [last], "rule")
    except NotLowerable as refusal:
        if not str(refusal).startswith(REFUSALS):
            raise
        return str(refusal)
    well_formed(lowered)
    wide = {number: t if number in program.constants else t.double() for number, t in env.items()}
    expected = replay(program.calls, wide)[last].double()
    (got,) = evaluate(lowered.program, parts(lowered, wide)).values()
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, msg=lambda text: f"{target} {what}: {text}")
    return "equal"


@pytest.mark.parametrize("target", TARGETS)
def test_rule(target: str) -> None:
    rng = random.Random(target)
    seen = Counter(outcome(target, rng) for _ in range(DRAWS))
    assert seen["equal"] >= 2, seen
