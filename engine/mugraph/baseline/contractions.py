"""The steps of an einsum as PyTorch takes them: from the left, two operands at a time, each index summed in the last
step that has it (torch.einsum, where opt_einsum chooses no other order)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mugraph.ir.library import Product


@dataclass(frozen=True, slots=True)
class Step:
    """What the steps before it have left, and the next operand. product: None where nothing is summed: PyTorch
    multiplies element by element then. elements: of its result"""

    product: Product | None
    elements: int


def contractions(equation: str, shapes: Sequence[Sequence[int]]) -> list[Step] | None:
    """Of two operands and more. None for an equation without a result, with an ellipsis, or that does not fit the
    shapes."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    names = left.split(",")
    fits = len(names) == len(shapes) > 1 and all(len(a) == len(b) for a, b in zip(names, shapes, strict=True))
    if not arrow or "." in equation or not fits:
        return None
    sizes: dict[str, int] = {}
    for name, shape in zip(names, shapes, strict=True):
        for index, size in zip(name, shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 1))
    found: list[Step] = []
    held = frozenset(names[0])
    for at, name in enumerate(names[1:], 2):
        wanted, other = frozenset(result).union(*names[at:]), frozenset(name)
        kept = (held | other) & wanted

        def count(indices: frozenset[str]) -> int:
            return prod(sizes[index] for index in indices)

        summed = (held | other) - wanted
        product = Product(count(held & other & wanted), count((held - other) & wanted), count((other - held) & wanted),
                          count(summed))  # fmt: skip
        found.append(Step(product if summed else None, count(kept)))
        held = kept
    return found
