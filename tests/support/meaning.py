"""What operators of the algebra mean on float64 arrays, for what evaluates graphs in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf

import numpy as np
from mugraph.ir.ops import Kind, Op
from mugraph.kinds import Opaque
from numpy.typing import NDArray

Array = NDArray[np.float64]

_erf = np.vectorize(erf)
_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "abs": np.abs,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def apply(op: Op, axes: Sequence[str], arrays: Sequence[Array], *, keepdims: bool) -> Array:
    """axes: the arrays' dimensions; every array has all of them, of size 1 where it lacks one."""
    over = tuple(axes.index(axis) for axis in op.over)
    match op.kind:
        case Kind.ADD:
            return arrays[0] + arrays[1]
        case Kind.MUL:
            return arrays[0] * arrays[1]
        case Kind.DIV:
            return arrays[0] / arrays[1]
        case Kind.SQRT:
            return np.sqrt(arrays[0])
        case Kind.EXP:
            return np.exp(arrays[0])
        case Kind.UNARY:
            return _FUNCTIONS[op.fn](arrays[0])
        case Kind.MAX:
            return np.maximum(arrays[0], arrays[1])
        case Kind.AMAX:
            return arrays[0].max(axis=over, keepdims=keepdims)
        case Kind.SUM:
            return arrays[0].sum(axis=over, keepdims=keepdims)
        case Kind.DOT:
            return (arrays[0] * arrays[1]).sum(axis=over, keepdims=keepdims)
        case Kind(opaque=Opaque(numbers=numbers)):
            return numbers(*arrays)
        case _:
            raise AssertionError(op.kind)
