"""NaN and infinities among the inputs of a float test.

Where PyTorch's result is a number, the kernel's is one, and the same; where it is none, the kernel's is none. Which of
NaN and the infinities it is depends on the order of operations, and is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf, nan, prod
from typing import Literal, get_args

import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPUTED, FLOATS
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor as Layout
from mugraph.verification.evaluate import ancestors
from mugraph.verification.rows import reduced

Special = Literal["NaN", "infinite"]
SPECIALS: Sequence[Special] = get_args(Special)
_FUNCTIONS, _SUM = frozenset({"exp", "unary", "opaque"}), frozenset({"add"})
_FAR_OFF = 0.05
"""A relative error that no order of operations explains. How exact a kernel is, other inputs show."""


def put_specials(
    program: TensorProgram, inputs: Mapping[str, Tensor], scenario: Special, generator: torch.Generator
) -> bool:
    """In place, in a few rows of each tensor that has other rows. Whether there is any such tensor."""
    done: set[int] = set()
    for tensor in program.tensors:
        data = inputs[tensor.name]
        rows = _rows(program, tensor)
        if id(data) in done or tensor.dtype not in COMPUTED or rows < 2:
            continue
        summed = [dim for dim in reduced(program, tensor) if tensor.strides[dim]]
        places = _two(rows, generator)
        across = [dim for dim in range(data.dim()) if dim not in summed and tensor.strides[dim]]
        lines = [_line(data, across, place) for place in places[: min(2, rows // 2)]]
        if scenario == "NaN":
            _put(lines[0], nan, generator)
        elif _is_free(program, tensor):
            for line, value in zip(lines, (inf, -inf), strict=False):
                _put(line, value, generator)
        elif _is_added_below_exp(program, tensor):
            for line, last in zip(lines, (False, True), strict=False):
                _hide(line, all_but_the_last=last)
        else:
            continue
        done.add(id(data))
    return bool(done)


def without_rows_said(program: TensorProgram) -> TensorProgram | None:
    """With what PyTorch's attention makes of a row that a mask hides: 0 times the numbers it has, of which NaN is none.
    None where there is no such attention."""
    past: set[str] = set()
    ops: list[Op] = []
    for op in program.ops:
        if (op.kind.opaque is not None and op.kind.opaque.passes_over) or past.intersection(op.inputs):
            past.add(op.name)
        is_said = op.name in past and op.kind.opaque is not None and op.kind.opaque.vanishes
        ops.append(replace(op, kind=_times()) if is_said else op)
    changed = tuple(ops)
    return replace(program, ops=changed) if changed != program.ops else None


@cache
def _times() -> Kind:
    """A product, which is NaN where a factor is, whatever the other one."""
    return next(kind for kind in Kind if kind.absorbing == 0.0 and kind.is_elementwise)


def trouble(program: TensorProgram, name: str, result: Tensor, exact: Tensor, other: Tensor | None) -> str | None:
    """What is wrong with an output; None if nothing is.

    exact: in float64, with what is no number
    other: as well, and right too: where a mask hides all of a row
    """
    result, number = result.to(torch.float64), torch.isfinite(exact)
    got = torch.isfinite(result)
    if other is not None:
        number = number & (torch.isfinite(other) | got)
    hidden = _first(number & ~got)
    if hidden is not None:
        return f"{name}{hidden} is NaN or infinite, where PyTorch has a number"
    # Of NaN as a whole number PyTorch says nothing.
    is_said = program.tensor(name).dtype in FLOATS
    lost = _first(~torch.isfinite(exact) & got) if is_said else None
    if lost is not None and not _passes_over(program):
        return f"{name}{lost} is a number, where PyTorch has NaN or infinity"
    wrong, size = (float(torch.where(number, x, 0.0).square().sum().sqrt()) for x in (result - exact, exact))
    if wrong <= _FAR_OFF * size:
        return None
    return f"{name} is wrong by {wrong / size:.2g} on the whole" if size else f"{name} is not zero, as it is in PyTorch"


def _passes_over(program: TensorProgram) -> bool:
    """May a kernel leave out what a mask, or the border of a window, makes zero? A product with zero is NaN there."""
    if any(op.kind.opaque is not None and op.kind.opaque.passes_over for op in program.ops):
        return True
    return any(op.kind is Kind.MASK for op in program.ops) or any(
        not window.edge for tensor in program.tensors for window in tensor.windows
    )


def _rows(program: TensorProgram, tensor: Layout) -> int:
    """Parts of the tensor that no sum or maximum joins."""
    summed = reduced(program, tensor)
    shape = tensor.shape(program.sizes)
    return prod(n for dim, n in enumerate(shape) if dim not in summed and tensor.strides[dim])


def _two(count: int, generator: torch.Generator) -> tuple[int, int]:
    """Different numbers below a count of two or more. It may be billions, too many to be put in an order."""
    first = int(torch.randint(count, (), generator=generator, device=generator.device))
    second = int(torch.randint(count - 1, (), generator=generator, device=generator.device))
    return first, second + (second >= first)


def _line(data: Tensor, across: Sequence[int], place: int) -> Tensor:
    """A view of one row: along the dimensions that are not `across`, the first place of what is expanded."""
    index: list[int | slice] = [slice(None)] * data.dim()
    for dim in reversed(across):
        place, index[dim] = divmod(place, data.shape[dim])
    for dim, stride in enumerate(data.stride()):
        if stride == 0:
            index[dim] = 0
    return data[tuple(index)]


def _put(line: Tensor, value: float, generator: torch.Generator) -> None:
    """In one place of it."""
    at: list[int] = []
    for size in line.shape:
        at.append(int(torch.randint(0, size, (), generator=generator, device=generator.device)))
    line[tuple(at)] = value


def _hide(line: Tensor, *, all_but_the_last: bool) -> None:
    """As a mask that is added to logits hides what comes first."""
    if line.dim():
        size = line.shape[-1]
        line[..., : size - 1 if all_but_the_last else size // 2] = -inf


def _is_free(program: TensorProgram, tensor: Layout) -> bool:
    """Does no function depend on it? By what it is made of, one may have another value at infinity than by itself."""
    return not any(name in _below_functions(program) for name in _loads(program, tensor))


def _is_added_below_exp(program: TensorProgram, tensor: Layout) -> bool:
    """Does it reach functions by sums alone, and those are exponentials?"""
    below, plain = _below_functions(program), set(_loads(program, tensor))
    for op in program.ops:
        if not plain.intersection(op.inputs):
            continue
        if op.kind.primitives == _SUM:
            plain.add(op.name)
        elif op.name in below or (op.kind.primitives & _FUNCTIONS and "exp" not in op.kind.primitives):
            return False
    return True


def _below_functions(program: TensorProgram) -> frozenset[str]:
    """Values that arguments of functions are computed from, and those arguments."""
    arguments = {name for op in program.ops if op.kind.primitives & _FUNCTIONS for name in op.inputs}
    return ancestors(program.ops, arguments)


def _loads(program: TensorProgram, tensor: Layout) -> Iterator[str]:
    """Of all its memory, whatever its axes are called."""
    alike = {t.name for t in program.tensors if t is tensor or (t.source and t.source == tensor.source)}
    yield from (op.name for op in program.ops if op.kind is Kind.LOAD and op.tensor in alike)


def _first(where: Tensor) -> list[int] | None:
    """An element where it is true."""
    return [int(place) for place in where.nonzero()[0]] if bool(where.any()) else None
