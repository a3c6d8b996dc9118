"""Arguments of the calls that reduce, norms and softmaxes among them, by families of calls that take the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from tests.engine.ops.rule_draws import Drawn, Indices, Rng, T, drawn, shape, some


def running(rng: Rng) -> Drawn:
    of = shape(rng)
    one = rng.randrange(-len(of), len(of))
    options = some(rng, dtype=torch.float32)
    return rng.choice((drawn(T(of), one, **options), drawn(T(of), **{rng.choice(("dim", "axis")): one})))


def largest(rng: Rng) -> Drawn:
    of = shape(rng)
    dims = sorted({rng.randrange(len(of)) for _ in range(2)})
    return drawn(T(of), rng.choice((dims, dims[0], dims[-1] - len(of))), **some(rng, keepdim=rng.random() < 0.5))


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
    return drawn(
        T(of), **some(rng, ord=rng.choice((2, 1, math.inf)), dim=rng.randrange(-len(of), len(of)), keepdim=True)
    )


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
    return drawn(
        T(of),
        **some(rng, p=rng.choice((1.0, 2)), dim=rng.randrange(-len(of), len(of)), eps=rng.choice((1.5, 1e-6, 0.0))),
    )


def softmax(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), rng.randrange(-len(of), len(of)), **some(rng, dtype=torch.float32))


def old_softmax(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), **some(rng, dim=rng.randrange(-len(of), len(of)), _stacklevel=5))


def loss(*options: str) -> Callable[[Rng], Drawn]:
    """Of an input and a target of one shape. options: of those that some losses have"""

    def draw(rng: Rng) -> Drawn:
        of = shape(rng)
        how = ["mean", "sum", "none", *(["batchmean"] if "batchmean" in options else [])]
        given = {"reduction": rng.choice(how)}
        for name in options:
            if name in ("delta", "beta", "margin"):
                given |= some(rng, **{name: rng.choice((0.5, 2.0))})
            if name == "log_target":
                given |= some(rng, log_target=True)
        positive = "positive" in options
        tensors = 3 if "three" in options else 2
        return drawn(T(of), *(T(of, positive=positive) for _ in range(tensors - 1)), **given)

    return draw


def cross_entropy(rng: Rng) -> Drawn:
    if rng.random() < 0.5:
        found = nll_loss(rng)
        return replace(found, kwargs={**found.kwargs, **some(rng, label_smoothing=0.2)})
    of = shape(rng)
    weight = T((of[1 if len(of) > 1 else 0],), positive=True)
    options = some(rng, weight=weight, label_smoothing=0.2)
    return drawn(T(of), T(of, positive=True), reduction=rng.choice(("mean", "sum", "none")), **options)


def nll_loss(rng: Rng) -> Drawn:
    of = shape(rng)
    at = 1 if len(of) > 1 else 0
    options = some(rng, weight=T((of[at],), positive=True), ignore_index=rng.choice((-7, of[at] + 3)))
    target = Indices((*of[:at], *of[at + 1 :]), of[at])
    return drawn(T(of), target, reduction=rng.choice(("mean", "sum", "none")), **options)


def gather(rng: Rng) -> Drawn:
    of = list(shape(rng))
    dim = rng.randrange(len(of))
    of[dim] = max(2, of[dim])
    index = Indices((*of[:dim], 1, *of[dim + 1 :]), of[dim])
    return drawn(T(tuple(of)), rng.choice((dim, dim - len(of))), index)


def take_along_dim(rng: Rng) -> Drawn:
    found = gather(rng)
    x, dim, index = found.args
    return drawn(x, index, dim)


def similarity(rng: Rng) -> Drawn:
    of = shape(rng, 2)
    return drawn(T(of), T(of), **some(rng, dim=rng.randrange(-len(of), len(of)), eps=0.3))


def distance(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), T(of), **some(rng, eps=0.1, keepdim=True))


def triplet(rng: Rng) -> Drawn:
    of = (4, rng.choice((3, 6)))
    return drawn(T(of), T(of), T(of), reduction=rng.choice(("mean", "sum", "none")), **some(rng, margin=0.5, swap=True))


def _space(rng: Rng, rank: int) -> tuple[int, ...]:
    most = (6, 7, 8) if rank < 3 else (5, 6)
    return (*rng.choice(((3,), (2, 3))), *(rng.choice(most) for _ in range(rank)))


def average_pool(rank: int) -> Callable[[Rng], Drawn]:
    """Windows one after another, overlapping ones, gaps, zeros beyond the ends."""

    def draw(rng: Rng) -> Drawn:
        kernel = [rng.choice((1, 2, 3)) for _ in range(rank)]
        stride = rng.choice((None, kernel, [rng.choice((1, 2, 3)) for _ in range(rank)], 2))
        options = {"padding": [rng.randint(0, size // 2) for size in kernel], "ceil_mode": True}
        counted = {"count_include_pad": False, **({"divisor_override": 5} if rank > 1 else {})}
        return drawn(
            T(_space(rng, rank)), kernel, *([] if stride is None else [stride]), **some(rng, **options, **counted)
        )

    return draw


def largest_pool(rank: int, results: int = 0) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        kernel = [rng.choice((1, 2, 3)) for _ in range(rank)]
        padding = [size // 2 * (rng.random() < 0.6) for size in kernel]
        given = some(rng, stride=rng.choice((kernel, 2, 1)), padding=padding, dilation=2, ceil_mode=True)
        return Drawn(
            (T(_space(rng, rank)), kernel), {**given, **({"return_indices": True} if results else {})}, results
        )

    return draw


def parts_pool(rank: int, results: int = 0) -> Callable[[Rng], Drawn]:
    """As many parts as there are, or a part of it."""

    def draw(rng: Rng) -> Drawn:
        of = tuple(rng.choice((4, 6)) for _ in range(rank))
        sizes = rng.choice((1, [rng.choice([n for n in (1, 2, 3) if size % n == 0]) for size in of], 2, 4))
        return Drawn((T((2, 3, *of)), sizes), {"return_indices": True} if results else {}, results)

    return draw


def variance_and_mean(rng: Rng) -> Drawn:
    one = variance(rng)
    return Drawn(one.args, one.kwargs, 2, rng.randrange(2))


def of_probabilities(rng: Rng) -> Drawn:
    of = shape(rng)
    weight = {"weight": T(of)} if rng.random() < 0.4 else {}
    return drawn(T(of, unit=True), T(of, unit=True), **weight, **some(rng, reduction=rng.choice(("sum", "none"))))


def of_counts(rng: Rng) -> Drawn:
    of, logarithm = shape(rng), rng.random() < 0.5
    options = some(rng, reduction=rng.choice(("sum", "none")), eps=0.1)
    return drawn(T(of, positive=not logarithm), T(of), **{} if logarithm else {"log_input": False}, **options)


POOLS: dict[str, Callable[[Rng], Drawn]] = {
    name: draw
    for rank in (1, 2, 3)
    for name, draw in (
        (f"avg_pool{rank}d", average_pool(rank)),
        (f"max_pool{rank}d", largest_pool(rank)),
        (f"max_pool{rank}d_with_indices", largest_pool(rank, 2)),
        (f"adaptive_avg_pool{rank}d", parts_pool(rank)),
        (f"adaptive_max_pool{rank}d", parts_pool(rank)),
        (f"adaptive_max_pool{rank}d_with_indices", parts_pool(rank, 2)),
    )
}

REDUCTIONS: dict[str, Callable[[Rng], Drawn]] = {
    "sum": reduction, "mean": reduction, "var": variance, "vector_norm": vector_norm, "norm": old_norm,
    "amax": largest, "amin": largest, "rms_norm": rms_norm, "layer_norm": layer_norm, "batch_norm": batch_norm,
    "std": variance, "var_mean": variance_and_mean, "std_mean": variance_and_mean,
    "binary_cross_entropy": of_probabilities, "poisson_nll_loss": of_counts,
    "log_softmax": softmax, "logsumexp": largest, "mse_loss": loss(), "l1_loss": loss(),
    "huber_loss": loss("delta"), "smooth_l1_loss": loss("beta"), "kl_div": loss("log_target", "batchmean", "positive"),
    "binary_cross_entropy_with_logits": loss(), "soft_margin_loss": loss(),
    "margin_ranking_loss": loss("three", "margin"), "cosine_similarity": similarity, "pairwise_distance": distance,
    "cross_entropy": cross_entropy, "nll_loss": nll_loss, "gather": gather, "take_along_dim": take_along_dim,
    "triplet_margin_loss": triplet, "group_norm": group_norm, "instance_norm": instance_norm, "normalize": normalize,
    "softmax": softmax, "cumsum": running, **POOLS,
}  # fmt: skip
REDUCTIONS_BY_TARGET: dict[str, Callable[[Rng], Drawn]] = {
    "torch.nn.functional.softmax": old_softmax,
    "torch.nn.functional.log_softmax": old_softmax,
    "torch.linalg.norm": matrix_norm,
}
