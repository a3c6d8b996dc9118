"""Numbers that code computes from sizes and gives to PyTorch, as in `x / x.shape[1]`: are they the same powers of sizes
at all sizes as at those at which the code is traced?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from mugraph.ir.ranges import Point, Product
from mugraph.ir.sized_arguments import SizedNumber, sized_of

_ROUNDING = 1e-12


class NumbersSeen(TorchFunctionMode):
    """found: expressions of numbers that calls were given"""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[object, None] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        for one in _inside((*args, *(kwargs or {}).values())):
            self.found.setdefault(one.node.expr)
        return func(*args, **(kwargs or {}))

    def other_numbers(
        self, traced: Sequence[Point], products: Mapping[object, Product], points: Sequence[Point]
    ) -> str | None:
        """The end of a sentence that says of which number it is not so; None where there is none.

        traced: sizes at which the code is traced. products: of the symbols
        """
        for expression in self.found:
            if not cast("Any", expression).free_symbols <= products.keys():  # as of `.item()`
                return "a number that the code computes comes of data"
            there = [_at(expression, products, point) for point in traced]
            number = sized_of(there, traced)
            if number is None:
                continue  # what is given a number that is none of these is told where it is traced
            for point in points:
                if not _is(number, point, _at(expression, products, point)):
                    said = ", ".join(f"{name} = {size}" for name, size in point.items())
                    return (
                        f"a number that the code computes from it is another one with {said} than its other values say"
                    )
        return None


def _is(number: SizedNumber, point: Point, value: float) -> bool:
    return abs(number.at(point) - value) <= _ROUNDING * abs(value)


def _at(expression: Any, products: Mapping[object, Product], point: Point) -> float:
    return float(expression.xreplace({symbol: of.at(point) for symbol, of in products.items()}))


def _inside(argument: object) -> Iterator[Any]:
    if isinstance(argument, torch.SymInt | torch.SymFloat):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in cast("Sequence[object]", argument):
            yield from _inside(one)
