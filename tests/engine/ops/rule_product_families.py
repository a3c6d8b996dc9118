"""Arguments of the calls that multiply and sum, by families of calls that take the same."""

from __future__ import annotations

from collections.abc import Callable

from tests.engine.ops.rule_draws import Drawn, Rng, T, broadcast, drawn, number, shape, some


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


def transposed_convolution(rank: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        c, o, groups = rng.choice((1, 3)), rng.choice((1, 2)), rng.choice((1, 1, 2))
        space, kernel = ([rng.choice((2, 3)) for _ in range(rank)] for _ in range(2))
        x = T((*((2,) if rng.random() < 0.7 else ()), groups * c, *space))
        weight, bias = T((groups * c, o, *kernel)), rng.choice((None, T((groups * o,))))
        steps = tuple(rng.choice((1, 2, 3)) for _ in range(rank))
        pads = tuple(rng.choice((0, size // 2)) for size in kernel)
        more = tuple(rng.choice((0, step - 1)) for step in steps)
        return drawn(x, weight, bias, **some(rng, dilation=1), stride=steps, padding=pads, output_padding=more,
                     groups=groups)  # fmt: skip

    return draw


def attention(rng: Rng) -> Drawn:
    b, s, t, d, e = (rng.choice((1, 2, 3)) for _ in range(5))
    heads, kv = rng.choice(((1, 1), (4, 2), (6, 1), (3, 3)))
    options = some(rng, scale=0.3, dropout_p=0.0, is_causal=rng.random() < 0.5, attn_mask=None)
    if heads == kv and rng.random() < 0.5:
        batch = shape(rng, 0, 2)
        return drawn(T((*batch, s, d)), T((*broadcast(rng, batch), t, d)), T((*batch, t, e)), **options)
    q, k, v = T((b, heads, s, d)), T((b, kv, t, d)), T((b, kv, t, e))
    return drawn(q, k, v, enable_gqa=True, **options)


def inner(rng: Rng) -> Drawn:
    of, k = shape(rng, 0, 2), rng.choice((1, 3, 4))
    return rng.choice((drawn(T((*of, k)), T((2, k))), drawn(T((*of, k)), T((k,)))))


def tensordot(rng: Rng) -> Drawn:
    return rng.choice((
        drawn(T((2, 3, 4)), T((3, 4, 5))), drawn(T((2, 3)), T((3, 4)), dims=1), drawn(T((2, 3)), T((4,)), dims=0),
        drawn(T((2, 3, 4)), T((4, 5, 2)), dims=((0, 2), (2, 0))), drawn(T((2, 3, 4)), T((5, 3)), dims=((-2,), (-1,))),
    ))  # fmt: skip


def row_products(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), T(of), **some(rng, dim=rng.randrange(-len(of), len(of))))


def added_batches(rng: Rng) -> Drawn:
    n, i, k, j = (rng.choice((1, 2, 3)) for _ in range(4))
    return drawn(T((i, j)), T((n, i, k)), T((n, k, j)), **some(rng, beta=number(rng), alpha=number(rng)))


def added_outer(rng: Rng) -> Drawn:
    i, j = rng.choice((2, 3)), rng.choice((1, 4))
    return drawn(T((i, j)), T((i,)), T((j,)), **some(rng, beta=number(rng), alpha=number(rng)))


PRODUCTS: dict[str, Callable[[Rng], Drawn]] = {
    "matmul": product, "rmatmul": reflected_product, "mm": matrices, "bmm": batches, "mv": matrix_vector,
    "dot": vectors, "outer": outer, "ger": outer, "linear": linear, "addmm": added_product(matrices),
    "baddbmm": added_product(batches), "addmv": added_product(matrix_vector), "einsum": einsum,
    "inner": inner, "tensordot": tensordot, "vecdot": row_products, "vdot": vectors, "addbmm": added_batches,
    "addr": added_outer, "conv1d": convolution(1), "conv2d": convolution(2), "conv3d": convolution(3),
    "conv_transpose1d": transposed_convolution(1), "conv_transpose2d": transposed_convolution(2),
    "conv_transpose3d": transposed_convolution(3),
    "scaled_dot_product_attention": attention,
}  # fmt: skip
