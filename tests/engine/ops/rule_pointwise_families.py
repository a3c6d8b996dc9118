"""Arguments of the calls that work element by element, by families of calls that take the same."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.engine.ops.rule_draws import Drawn, Indices, Lower, Rng, T, broadcast, drawn, number, shape, some


def unary(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 0)))


def positive(rng: Rng) -> Drawn:
    return drawn(T(shape(rng), positive=True))


def inplace_option(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, inplace=False))


def two_tensors(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), T(broadcast(rng, of)))


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


def condition(rng: Rng, of: tuple[int, ...]) -> Lower:
    of = of if rng.random() < 0.5 else of[-2:]
    return Lower(of, rng.randrange(-1, 2), rng.random() < 0.5)


def one_hot(rng: Rng) -> Drawn:
    count = rng.choice((1, 2, 3, 5))
    index = Indices(shape(rng, 1, 3), count)
    return rng.choice((drawn(index, count), drawn(index, num_classes=count + 1)))


def written_out(rng: Rng, *before: T) -> Drawn:
    numbers = [rng.choice((0.5, -1.25, 3.0, 0.1)) for _ in range(rng.choice((1, 2, 3, 8)))]
    data = rng.choice((numbers, [numbers, numbers[::-1]], [1.5, 1.5, 1.5], numbers[0], [3.0, 1.0, -1.0, -3.0]))
    return rng.choice((drawn(*before, data), drawn(*before, data, dtype=torch.float32)))


def arange(rng: Rng) -> Drawn:
    size, start, step = rng.randint(1, 7), rng.randint(-3, 3), rng.choice((1, 2, -1, 0.5))
    ends = rng.choice(((size,), (start, start + size), (start, start + size * step, step)))
    return drawn(*ends, dtype=torch.float32)


def made(of: str, *number: float) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        size = shape(rng)
        first = {"size": [size], "like": [T(size)], "new": [T(shape(rng)), size]}[of]
        return Drawn((*first, *number), {}, summed=True)  # times 1 it would be what it meets, as it is

    return draw


def by_power_of_two(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), rng.choice((2, 1.0, 0.5, -0.25)))


def raised(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), rng.choice((2, 0.5, 3.0)))


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


def comparison(rng: Rng) -> Drawn:
    """Of numbers some of which are equal."""
    of = shape(rng)
    other = rng.choice((0, 0.5, -1.25, T(broadcast(rng, of), exact=True)))
    return drawn(T(of, exact=True), other)


def conditions(rng: Rng) -> Drawn:
    of = (*shape(rng, 0, 2), 3, 4)
    return drawn(condition(rng, of), condition(rng, of))


def one_condition(rng: Rng) -> Drawn:
    return drawn(condition(rng, (3, 4)))


def softplus(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, beta=rng.choice((0.5, 3.0)), threshold=40.0))


def with_alpha(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, alpha=rng.choice((0.5, 2.0))))


def with_limit(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), **some(rng, lambd=rng.choice((0.2, 1.0))))


def threshold(rng: Rng) -> Drawn:
    return drawn(T(shape(rng)), rng.choice((0.0, 0.3)), rng.choice((0.0, -2.0)))


def prelu(rng: Rng) -> Drawn:
    of = shape(rng, 2)
    return drawn(T(of), T(rng.choice(((1,), (of[1],)))))


def glu(rng: Rng) -> Drawn:
    of = list(shape(rng))
    dim = rng.randrange(-len(of), len(of))
    of[dim] *= 2
    return drawn(T(tuple(of)), dim) if dim != -1 or rng.random() < 0.5 else drawn(T(tuple(of)))


POINTWISE: dict[str, Callable[[Rng], Drawn]] = {
    **dict.fromkeys(["neg", "negative", "positive", "pos", "square", "exp", "exp2"], unary),
    **dict.fromkeys(["relu", "sigmoid", "tanh", "expit", "abs", "absolute", "erf"], unary),
    **dict.fromkeys(["sqrt", "rsqrt", "reciprocal"], positive),
    **dict.fromkeys(["add", "radd", "iadd", "sub", "subtract", "isub", "rsub"], scaled),
    **dict.fromkeys(["mul", "rmul", "imul", "multiply"], binary),
    **dict.fromkeys(["truediv", "true_divide", "itruediv", "rtruediv", "rdiv", "idiv"], quotient),
    **dict.fromkeys(["div", "divide"], quotient_option),
    "glu": glu, "logaddexp": two_tensors,
    "maximum": two_tensors, "minimum": two_tensors, "max": largest_or_larger, "min": largest_or_larger,
    "clamp": limits("min", "max"), "clip": limits("min", "max"),
    "clamp_min": limits("min"), "clamp_max": limits("max"), "hardtanh": hardtanh, "leaky_relu": leaky_relu,
    **dict.fromkeys(["relu6", "hardsigmoid", "hardswish"], inplace_option),
    "pow": power, "addcmul": three, "addcdiv": three, "lerp": lerp, "silu": inplace_option, "gelu": gelu,
    "dropout": dropout, "dropout1d": dropout, "dropout2d": dropout, "alpha_dropout": plain_dropout,
    **dict.fromkeys(["log", "log2", "log10"], positive),
    **dict.fromkeys(["softsign", "tanhshrink", "logsigmoid", "mish", "selu", "sign", "sgn"], unary),
    **dict.fromkeys(["elu", "celu"], with_alpha), **dict.fromkeys(["softshrink", "hardshrink"], with_limit),
    "softplus": softplus, "threshold": threshold, "prelu": prelu,
    **dict.fromkeys(["gt", "ge", "eq", "lt", "le", "ne", "greater", "greater_equal"], comparison),
    **dict.fromkeys(["less", "less_equal", "not_equal"], comparison),
    "masked_fill": masked_fill, "where": where, "arange": arange, "one_hot": one_hot,
    "tensor": written_out, "new_tensor": lambda rng: written_out(rng, T((2,))), "zeros": made("size"),
    "ones": made("size"), "full": made("size", 1.5), "zeros_like": made("like"), "ones_like": made("like"),
    "full_like": made("like", -2.0), "new_zeros": made("new"), "new_ones": made("new"), "new_full": made("new", 3.0),
    "rpow": raised,
    **dict.fromkeys(["remainder", "fmod", "mod"], by_power_of_two),
    "tril": triangular, "triu": triangular,
}  # fmt: skip


POINTWISE_BY_TARGET: dict[str, Callable[[Rng], Drawn]] = {
    "torch.dropout": plain_dropout,
    **{
        f"{owner}.{kind}_{name}": conditions
        for owner in ("torch", "Tensor")
        for kind in ("logical", "bitwise")
        for name in ("and", "or")
    },
    **{f"{owner}.{kind}_not": one_condition for owner in ("torch", "Tensor") for kind in ("logical", "bitwise")},
    "Tensor.__and__": conditions,
    "Tensor.__or__": conditions,
    "Tensor.__invert__": one_condition,
    "torch.nn.functional.elu_": unary,
    "torch.nn.functional.celu_": unary,
    "torch.nn.functional.selu_": unary,
    "torch.celu_": unary,
    "torch.selu_": unary,
    "torch.nn.functional.dropout2d": plain_dropout_of_images,
    "Tensor.__rsub__": binary,
    "torch.nn.functional.gelu": gelu,
    "torch.nn.functional.relu": inplace_option,
    "torch.nn.functional.hardtanh_": unary,
    "torch.nn.functional.leaky_relu_": unary,
}
