"""Arguments of the calls that compute something, by families of calls that take the same."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rule_draws import Drawn, Lower, Rng, T, broadcast, drawn, number, shape, some


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


COMPUTING: dict[str, Callable[[Rng], Drawn]] = {
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
}  # fmt: skip
COMPUTING_BY_TARGET: dict[str, Callable[[Rng], Drawn]] = {
    "torch.nn.functional.softmax": old_softmax,
    "torch.linalg.norm": matrix_norm,
    "torch.dropout": plain_dropout,
    "torch.nn.functional.dropout2d": plain_dropout_of_images,
    "Tensor.__rsub__": binary,
    "torch.nn.functional.gelu": gelu,
    "torch.nn.functional.relu": inplace_option,
    "torch.nn.functional.hardtanh_": unary,
    "torch.nn.functional.leaky_relu_": unary,
}
