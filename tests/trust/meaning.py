"""What operators mean, in float64: element-wise functions, reductions, masks. Values are [sets, axis, axis, ...]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.trust.memory import Floats, Json, Wrong

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))


_ROOT = math.sqrt(2.0 / math.pi)
FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "abs": np.abs,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + np.tanh(_ROOT * (x + 0.044715 * x**3))),
}
OPERANDS = {
    "load": 0, "const": 0, "mask": 0, "add": 2, "mul": 2, "div": 2, "max": 2, "sqrt": 1, "exp": 1, "unary": 1,
    "sum": 1, "amax": 1, "dot": 2, "accum": 1, "store": 1,
}  # fmt: skip
POINTWISE = {"add", "mul", "div", "max", "sqrt", "exp", "unary"}
REDUCTIONS = {"sum", "amax", "dot"}


def number(value: object) -> float:
    """A float of the JSON, which writes those that JSON lacks as {"float": "inf"}."""
    if isinstance(value, dict):
        return float(value["float"])
    if isinstance(value, int | float):
        return float(value)
    raise Wrong(f"{value!r} is no number")


def pointwise(op: Json, operands: Sequence[Floats]) -> Floats:
    match op["kind"]:
        case "add":
            return operands[0] + operands[1]
        case "mul":
            return operands[0] * operands[1]
        case "div":
            return operands[0] / operands[1]
        case "max":
            return np.maximum(operands[0], operands[1])
        case "sqrt":
            return np.sqrt(operands[0])
        case "exp":
            return np.exp(operands[0])
        case "unary" if op["fn"] in FUNCTIONS:
            return FUNCTIONS[op["fn"]](operands[0])
        case kind:
            raise Wrong(f"{op['name']}: nobody knows {kind} {op['fn']}")


def reduced(op: Json, operands: Sequence[Floats], order: list[str]) -> Floats:
    """Over the axes in `over`, which stay as dimensions of 1."""
    at = tuple(1 + order.index(axis) for axis in op["over"])
    if op["kind"] == "sum":
        return operands[0].sum(axis=at, keepdims=True)
    if op["kind"] == "amax":
        return operands[0].max(axis=at, keepdims=True)
    letters = list(range(1 + len(order)))
    left, right = operands
    kept = [letter for letter in letters if letter not in at]
    shape = [1 if i in at else max(left.shape[i], right.shape[i]) for i in letters]
    # A dimension of 1 meets one of n in an operand that lacks the axis: einsum is told of those present only.
    named = [[i for i in letters if i == 0 or part.shape[i] > 1] for part in operands]
    dense = [part.reshape([part.shape[i] for i in have]) for part, have in zip(operands, named, strict=True)]
    out = [i for i in kept if i in named[0] or i in named[1]]
    product = np.einsum(dense[0], named[0], dense[1], named[1], out)
    return product.reshape(shape)


def triangle(op: Json, order: list[str], sizes: Mapping[str, int]) -> Floats:
    """1 where the place along `columns` is at most that along `rows` plus the diagonal. [1, axis, axis, ...]"""

    def along(axes: list[str]) -> Floats:
        count = np.zeros([1] * (1 + len(order)))
        for axis in axes:
            shape = [1] * (1 + len(order))
            shape[1 + order.index(axis)] = sizes[axis]
            count = count * sizes[axis] + np.arange(sizes[axis]).reshape(shape)
        return count

    return (along(op["columns"]) <= along(op["rows"]) + number(op["value"])).astype(np.float64)
