"""What PyTorch loses on the way through a program, and what a right kernel may lose: for torch_reference.py."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import hypot, log2, prod, sqrt

import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPUTED, READ, DType
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.statistics import statistics
from mugraph.ir.tf32 import EPSILON as TF32
from mugraph.ir.whole import whole_values
from mugraph.search.topologies.softmax import shift_invariant
from mugraph.verification.designed import Signs
from mugraph.verification.so_far import TILE, ProductSoFar, SumSoFar
from mugraph.verification.torch_reference import Joined, OfResult, TorchArithmetic, Value

TORCH_TYPES: Mapping[DType, torch.dtype] = {name: getattr(torch, one.torch) for name, one in READ.items()}
EPSILON: Mapping[DType, float] = {name: one.epsilon for name, one in READ.items()}
"""Largest relative error of one rounding (half a unit in the last place)."""
SINGLE = EPSILON["f32"]
SINGLES: Sequence[DType] = ("f32",)
SPREAD = 0.41
"""Root mean square of a relative rounding error, as a part of the largest (numbers spread evenly over a binade)."""
_TF32_BITS = round(-log2(TF32))
_SINGLE_BITS = round(-log2(SINGLE))
_CHOICES = frozenset({"relu", "abs"})


class Eager:
    """As the eager program rounds: every value to the type it would have (the storage type, or float32 where Op.f32
    says so), operands of a product that takes TF32 to that; sums are accumulated in full and rounded once. What lies
    between an exp and the division that normalises it is rounded to float32's 24 bits without its range, as inside a
    softmax. An exp that nothing normalises, as of a decay, has its type's range: it is infinite where PyTorch's is."""

    def __init__(self, program: TensorProgram) -> None:
        self._precision = precisions(program)

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        return _to_bits(data, _TF32_BITS) if op.tf32 else data

    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor:
        return _round(data, self._precision[op.name])

    def joined(self, op: Op) -> Joined:
        return OfResult(self, op)


class Single:
    """As a kernel that computes each operator in float32, constants as well, and divides by multiplying with an
    inverse."""

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        return _to_bits(data, _SINGLE_BITS)

    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor:
        if op.kind.by_inverse is None:
            return _to_bits(data, _SINGLE_BITS)
        numerator, divisor = (replace(one, data=_to_bits(one.data, _SINGLE_BITS)) for one in operands)
        inverse = replace(divisor, data=_to_bits(1.0 / divisor.data, _SINGLE_BITS))
        product = op.kind.by_inverse.meaning(TorchArithmetic(data.device), [numerator, inverse], "", ())
        return _to_bits(product.data, _SINGLE_BITS)

    def joined(self, op: Op) -> Joined:
        return OfResult(self, op)


class Perturbed:
    """Random errors wherever a right kernel may have them, and as large as it may have them. Their effect on the
    outputs is how far from exact a kernel of this program may be. A kernel that computes the program in a worse
    conditioned form is further off.

    Every result has the error of a rounding to its own type. Further relative errors: an operand of a product over
    an axis, if it was computed, is rounded to the program's coarsest type (tensor cores), and any operand of one that
    takes TF32 to that; a sum has the error of
    float32's accumulation, one number after the other in a product and by tiles elsewhere: what it has come to on the
    way is rounded, however small the whole is; arguments of
    exponentials, quotients, roots and other functions are wrong by two units in the last place of a float32.
    Tensors that are read have no other error. What is rounded to few numbers, and whole numbers that are computed of
    those, have no error of their own.

    times: how much larger the errors are
    signs: of the errors, the same for all elements; None: random ones
    """

    def __init__(
        self, program: TensorProgram, generator: torch.Generator, times: float = 1.0, signs: Signs | None = None
    ) -> None:
        self._spread, self._signs = SPREAD * times, signs
        self._whole = whole_values(program)
        self._precision = precisions(program)
        self._sizes, self._random = program.sizes, generator
        types: list[DType] = [tensor.dtype for tensor in program.tensors if tensor.dtype in COMPUTED]
        self._coarsest: DType = max(types or SINGLES, key=lambda kind: EPSILON[kind])
        ops = {op.name: op for op in program.ops}
        self._computed = {
            name for name, op in ops.items() if not op.kind.is_leaf or self._precision[name] != self._coarsest
        } - {
            name
            for name, op in ops.items()
            if op.kind is Kind.CONST or op.kind.of_places or op.kind.stored or _is_stored(program, op)
        }

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        if op.kind.argument_ulps:
            return self._wrong((op.name, position), data, op.kind.argument_ulps * SINGLE)
        if not op.kind.adds:
            return data
        size = SINGLE * sqrt(self._steps(op) / 2) if position == 0 else 0.0
        rounded = op.kind.contracts and op.inputs[position] in self._computed
        if rounded:
            size = hypot(size, EPSILON[self._coarsest])
        if op.tf32:
            size = hypot(size, TF32)
        if not size:
            return data
        return self._wrong((op.name, position), data, size, _least(self._coarsest) if rounded or op.tf32 else 0.0)

    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor:
        if op.kind.reduces:
            whole = self.joined(op)
            whole.add(operands, 1.0)
            return whole.result(data)
        if op.kind.chooses or op.fn in _CHOICES or op.kind.jumps or op.name in self._whole:
            return data
        more = SINGLE * self._on_the_way(op, operands[0].axes, data) if op.kind.scans else None
        wrong = self.off(op, data, more)
        if op.fn:  # x * (1 + erf(x)) and its kin cancel
            argument = operands[0].data
            wrong = wrong + (self._wrong((op.name, op.fn), argument, SINGLE) - argument)
        return wrong

    def joined(self, op: Op) -> Joined:
        if op.kind.is_plain_sum:
            return _Off(self, op, SumSoFar(op, self._sizes))
        if op.kind.contracts:
            return _Off(self, op, ProductSoFar(op, self._sizes, self._steps(op)))
        return _Off(self, op, None)

    def off(self, op: Op, data: Tensor, more: Tensor | None = None, so_far: Tensor | None = None) -> Tensor:
        """An operator's result with the errors that it may have. more, so_far: of `_wrong`"""
        kind = self._precision[op.name]
        size = EPSILON[kind] if kind else SINGLE
        if op.kind.adds:
            size = hypot(size, SINGLE * sqrt(self._steps(op) / 3))
        if op.kind.ulps:
            size = hypot(size, op.kind.ulps * SINGLE)
        return self._wrong((op.name, None), data, size, _least(kind), more, so_far)

    def _steps(self, op: Op) -> float:
        terms = prod(self._sizes[axis] for axis in op.over)
        return terms if op.kind.contracts else 1 + terms / TILE

    def _on_the_way(self, op: Op, axes: Sequence[str], data: Tensor) -> Tensor:
        """Of a running sum, what it has come to up to each place, as the root of the sum of squares: that is what is
        rounded where one number is added after the other, as PyTorch's own kernels do along all axes but the last.
        data, axes: its numbers"""
        (axis,) = op.over
        position = axes.index(axis)
        squares = data.square()
        turned = squares.flip(position) if op.kind.backwards else squares
        so_far = turned.cumsum(position)
        return (so_far.flip(position) if op.kind.backwards else so_far).sqrt()

    def _wrong(
        self,
        place: Hashable,
        data: Tensor,
        size: float,
        least: float = 0.0,
        more: Tensor | None = None,
        so_far: Tensor | None = None,
    ) -> Tensor:
        """place: in the program. size: of the error, relative to the data. more: of a further one, absolute. so_far:
        the error that the data has, which this one adds to: where they even out in a few draws, the spread would seem
        small"""
        # Of one size, up or down: of a few draws from a range, all are small at some of millions of elements.
        if self._signs is not None:
            noise = torch.full_like(data, self._signs.of(place), dtype=torch.int8)
        else:
            noise = torch.randint(0, 2, data.shape, generator=self._random, device=data.device, dtype=torch.int8)
            noise = noise.mul_(2).sub_(1)
        if so_far is not None:
            noise = torch.where(so_far == 0.0, noise, torch.ones_like(data).copysign(so_far * data.sign()))
        # In place: what is computed has gigabytes, and a pass over them takes as long as the arithmetic of ten.
        error = data.abs()
        if least or more is not None:
            error = error.clamp_(min=least)
        error = error.mul_(size) if more is None else torch.hypot(error.mul_(size), more).copysign(data)
        wrong = error.mul_(self._spread).mul_(noise).add_(data)
        if more is not None:
            return torch.where((wrong * data.sign() > 0.0) | (more > 0.0), wrong, 0.0)
        # Nothing is rounded beyond zero: a square has a root.
        return torch.where(wrong * data > 0.0, wrong, 0.0) if least else wrong


@dataclass(frozen=True)
class _Off:
    """A reduction's result with the errors that it may have. so_far: None of one that chooses: it has none"""

    perturbed: Perturbed
    op: Op
    so_far: SumSoFar | ProductSoFar | None

    def add(self, operands: Sequence[Value], share: float) -> None:
        if self.so_far is not None:
            self.so_far.add(operands, share)

    def result(self, data: Tensor) -> Tensor:
        if self.so_far is None:
            return data
        beyond, exact = self.so_far.beyond()
        return self.perturbed.off(self.op, data, SINGLE * beyond, None if exact is None else data - exact)


def _least(kind: DType | None) -> float:
    """Below it a type's numbers lie as close together as just above."""
    return torch.finfo(TORCH_TYPES[kind]).tiny if kind else 0.0


def precisions(program: TensorProgram) -> dict[str, DType | None]:
    """Value -> the type eager PyTorch keeps it in; None inside a softmax.

    A value's natural type is the promoted type of the tensors it comes from; Op.f32 lifts it to float32 for itself
    only, because the user's program converts back where the mark ends. Sums, what is computed for nothing but them, and
    what is computed from nothing else (a mean, a root of a mean square) are float32 as well: so they are inside
    PyTorch's norms and variances, and a program does not say whether it has them from one.
    """
    inner, softmax = statistics(program), shift_invariant(program.ops)
    natural: dict[str, DType | None] = {}
    inside: dict[str, bool] = {}
    result: dict[str, DType | None] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            dtype = program.tensor(op.tensor).dtype
            natural[op.name] = dtype if dtype in COMPUTED else None  # it takes the type of what it meets
        elif op.kind.stored:
            natural[op.name] = None  # likewise
        else:
            natural[op.name] = reduce(_promoted, (natural[name] for name in op.inputs), None)
        parts = [inside[name] for name in op.inputs]
        normalised = op.kind is Kind.DIV and all(parts)
        begins = op.name in softmax if op.kind.is_exponential else "exp" in op.kind.primitives
        inside[op.name] = begins or (any(parts) and not normalised)
        is_exact = inside[op.name] or bool(op.kind.stored)
        result[op.name] = None if is_exact else "f32" if op.f32 or op.name in inner else natural[op.name] or "f32"
    return result


def _is_stored(program: TensorProgram, op: Op) -> bool:
    """Is it read from a tensor of a type that converts to any other without loss?"""
    return op.kind is Kind.LOAD and program.tensor(op.tensor).dtype not in COMPUTED


def _promoted(a: DType | None, b: DType | None) -> DType | None:
    """torch's promotion; None is a number without a type."""
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else "f32"


def _round(data: Tensor, kind: DType | None) -> Tensor:
    if kind is None:
        return _to_bits(data, 24)
    return data.to(TORCH_TYPES[kind]).to(torch.float64)


def _to_bits(data: Tensor, bits: int) -> Tensor:
    """To so many bits of the mantissa, whatever the size."""
    mantissa, exponent = torch.frexp(data)
    return torch.ldexp(torch.round(mantissa * 2.0**bits) / 2.0**bits, exponent)
