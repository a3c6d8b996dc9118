"""Values of a program that all of its products reach the outputs through, and that are much smaller than these.

A cross-entropy has one number for each row, whatever is then made of the rows: a kernel graph that computes the product
and that number together stores nothing as large as the product. Estimates of parts that were not searched are too
coarse to tell it from others that store the product, of which there are many; so it is looked at before them.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from mugraph.ir.program import TensorProgram
from mugraph.search.kernel_graphs.partitions import Part

NARROWER = 16
"""Times as many places as such a value has, a product has at least."""


def waists(program: TensorProgram, stored: Collection[str]) -> list[tuple[Part, Part]]:
    """What computes such a value, and what goes on from it: of values along the same axes, the last one. stored: values
    that kernels may hand to one another"""
    products = [op for op in program.ops if op.kind.contracts]
    if not products or len(program.outputs) > 1:
        return []
    (output,) = program.outputs
    least = min(prod(program.sizes[axis] for axis in op.axes) for op in products)
    found: dict[tuple[str, ...], tuple[Part, Part]] = {}
    for op in program.ops:
        if op.name not in stored or op.name == output or op.kind.contracts:
            continue
        if NARROWER * prod(program.sizes[axis] for axis in op.axes) > least:
            continue
        after = _after(program, output, op.name)
        kinds = [other.kind for other in program.ops if other.name in after]
        if any(kind.contracts for kind in kinds) or not any(kind.reduces for kind in kinds):
            continue
        found[op.axes] = Part((op.name,), frozenset()), Part((output,), frozenset({op.name}))
    return list(found.values())


def _after(program: TensorProgram, output: str, value: str) -> set[str]:
    """What the output is computed from, without what the value is computed from alone."""
    needed = {output}
    for op in reversed(program.ops):
        if op.name in needed and op.name != value:
            needed.update(op.inputs)
    return needed - {value}
