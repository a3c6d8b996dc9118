"""How much work the test of lowering is, before it is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.verification.lowering.inputs import read_values


@dataclass(frozen=True)
class Work:
    """products: multiplications that the calls add up. elements: of all that the calls read and make. program: of all
    that the program's operators make"""

    products: float
    elements: float
    program: float

    def is_within(self, products: float, elements: float) -> bool:
        return self.products <= products and self.elements <= elements

    @property
    def words(self) -> str:
        return f"{self.products:.2g} products and {self.elements:.2g} numbers"


def work_of(unit: SearchUnit) -> Work:
    """Of the values on the way those that are known. Raises NotDrawn."""
    made = [unit.values[value] for call in unit.calls for value in call.outputs if value in unit.values]
    elements = sum(prod(info.shape) for info in (*read_values(unit).values(), *made))
    return Work(sum(_products(unit.program)), elements, sum(_elements(unit.program)))


def _products(program: TensorProgram) -> Iterator[float]:
    axes = {op.name: frozenset(op.axes) for op in program.ops}
    for op in program.ops:
        if op.kind.contracts:
            yield prod(program.sizes[axis] for axis in frozenset[str]().union(*(axes[name] for name in op.inputs)))


def _elements(program: TensorProgram) -> Iterator[float]:
    for op in program.ops:
        if op.kind is not Kind.CONST:
            yield prod(program.sizes[axis] for axis in op.axes)
