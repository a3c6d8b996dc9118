"""The operators that OpEvo's paper compares tuners on (appendix B, with the shapes of its published experiments):
products of BERT, also of many small matrices, and the first two convolutions of AlexNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

_Sides = tuple[int, int, int, int]


@dataclass(frozen=True)
class Operator:
    """name: the paper's. inputs: name -> shape. code: of the function's body. flops: of a run"""

    name: str
    says: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    code: str
    flops: int

    def text(self, dtype: str) -> str:
        """A file whose one function is the operator."""
        shapes = ", ".join(f"{name}={dtype}{list(shape)}" for name, shape in self.inputs)
        names = ", ".join(name for name, _ in self.inputs)
        body = f"def {self.name}({names}):\n    return {self.code}\n"
        return f"import torch\nimport torch.nn.functional as F\n\n\n# mugraph: {shapes}\n{body}"


def _product(name: str, m: int, k: int, n: int) -> Operator:
    inputs = (("x", (m, k)), ("w", (k, n)))
    return Operator(name, f"{m} x {k} by {k} x {n}", inputs, "x @ w", 2 * m * k * n)


def _products(
    name: str, says: str, x: tuple[int, int, int], w: tuple[int, int, int], code: str, depth: int
) -> Operator:
    count = x[0]
    rows, columns = prod(x) // count // depth, prod(w) // count // depth
    return Operator(name, says, (("x", x), ("w", w)), code, 2 * count * rows * columns * depth)


def _convolution(name: str, image: _Sides, filters: _Sides, stride: int, pad: int) -> Operator:
    side = (image[2] + 2 * pad - filters[2]) // stride + 1
    says = f"images {' x '.join(map(str, image))}, filters {' x '.join(map(str, filters))}, stride {stride}, pad {pad}"
    code = f"F.conv2d(x, w, stride={stride}, padding={pad})"
    return Operator(name, says, (("x", image), ("w", filters)), code, 2 * image[0] * side * side * prod(filters))


OPERATORS: Sequence[Operator] = (
    _product("MM1", 512, 1024, 1024),
    _product("MM2", 512, 1024, 4096),
    _product("MM3", 512, 4096, 1024),
    _products("BMM1", "960 of 128 x 128 by 128 x 64", (960, 128, 128), (960, 128, 64), "x @ w", 128),
    _products("BMM2", "960 of 128 x 128, transposed, by 128 x 64", (960, 128, 128), (960, 128, 64),
              "x.transpose(1, 2) @ w", 128),
    _products("BMM3", "960 of 128 x 64 by 128 x 64, transposed", (960, 128, 64), (960, 128, 64),
              "x @ w.transpose(1, 2)", 64),
    _convolution("C1", (512, 3, 227, 227), (64, 3, 11, 11), 4, 0),
    _convolution("C2", (512, 64, 27, 27), (192, 64, 5, 5), 1, 2),
)  # fmt: skip
