"""Whether a graph that is equal over the reals loses digits that its program keeps.

`(a @ b) @ d` and `a @ (b @ d)` are one function. Where the columns of `a` nearly cancel in `a @ b`, the first is as
exact as its type allows, and the second adds up the roundings of `b @ d` instead. No schedule mends that: a topology
is judged once, in milliseconds and before any kernel is written, instead of each of its kernels by float_test.py.

Graph and program run at the verifier's small sizes in float64, with each result rounded as it would be: the program's
to its storage type, and the two halves of its sums to float32; the graph's to float32, and to the storage type where a
product takes them. What is rejected here is far beyond what float_test.py allows, and what passes has still to pass
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.dtypes import COMPUTED, READ, DType
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.compared import meant
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_kernels
from mugraph.verification.inputs import homes
from mugraph.verification.sizes import assignments, grid_axes
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topologies
from mugraph.verification.weights import summing_as_at_full_size

Reals = NDArray[np.float64]

MOST = 4.0
"""The graph's error at most, in root mean squares of the program's own: a little more than the float test allows."""
_SINGLE = COMPUTED["f32"].epsilon
_FEW_BITS = 3
"""Of the mantissa of a number that is stored in eight."""
_DRAWS, _LEAST_DRAWS = 64, 8
_ELEMENTS = 1 << 20
"""Of the largest value, of all draws: of large ones fewer draws say as much."""
_TINY = 2.0**-970
"""Of float64: numbers that are a part of it by 2^-52 are no less exact."""
_LEFT = 1 / 16
"""Of numbers that cancel."""


class Smooth(FloatArithmetic):
    """Without the jumps of functions that are constant elsewhere. What is lost is lost before them; and next to one, a
    rounding that any graph may have is as large as a step."""

    def opaque(self, kind: Kind, *operands: Reals) -> Reals:
        return operands[0] if kind.jumps else super().opaque(kind, *operands)


class RoundedArithmetic(FloatArithmetic):
    """float64 with the roundings of a narrower type. Numbers keep float64's range.

    results, factors: bits of what an operator computes, and of what a product over an axis takes
    """

    def __init__(self, results: int, factors: int) -> None:
        self._results, self._factors = results, factors

    def add(self, a: Reals, b: Reals) -> Reals:
        return nearest(a + b, self._results)

    def mul(self, a: Reals, b: Reals) -> Reals:
        return nearest(a * b, self._results)

    def div(self, a: Reals, b: Reals) -> Reals:
        """No number where the divisor is too small: what a softmax without a maximum divides by, of logits of -10000.
        What was added up for both has lost its digits there, to float64 and not to the narrower type."""
        return np.where(np.abs(b) < _TINY, np.nan, nearest(a / b, self._results))

    def sqrt(self, a: Reals) -> Reals:
        return nearest(np.sqrt(a), self._results)

    def exp(self, a: Reals) -> Reals:
        return nearest(np.exp(a), self._results)

    def unary(self, fn: str, a: Reals) -> Reals:
        return nearest(super().unary(fn, a), self._results)

    def opaque(self, kind: Kind, *operands: Reals) -> Reals:
        return operands[0] if kind.jumps else nearest(super().opaque(kind, *operands), self._results)

    def sum(self, a: Reals, over: tuple[int, ...]) -> Reals:
        return nearest(super().sum(a, over), self._results)

    def dot(self, a: Reals, b: Reals, over: tuple[int, ...]) -> Reals:
        product = super().dot(nearest(a, self._factors), nearest(b, self._factors), over)
        return nearest(product, self._results)

    def running(self, a: Reals, over: tuple[int, ...], backwards: bool) -> Reals:
        return nearest(super().running(a, over, backwards), self._results)


class OwnArithmetic(RoundedArithmetic):
    """The program's own roundings: PyTorch adds up at least two parts of a sum, in float32 or better.

    A float32 sum whose terms cancel is then as wrong as its parts are large. With one rounding of the whole, a kernel
    that adds up in a loop would be compared with a program that nothing runs.
    """

    def sum(self, a: Reals, over: tuple[int, ...]) -> Reals:
        parts: list[Reals] = [FloatArithmetic.sum(self, part, over) for (part,) in _halves(over, a)]
        return nearest(_added(parts), self._results)

    def dot(self, a: Reals, b: Reals, over: tuple[int, ...]) -> Reals:
        taken = nearest(a, self._factors), nearest(b, self._factors)
        parts: list[Reals] = [FloatArithmetic.dot(self, one, two, over) for one, two in _halves(over, *taken)]
        return nearest(_added(parts), self._results)


def _halves(over: tuple[int, ...], *arrays: Reals) -> list[tuple[Reals, ...]]:
    """The arrays cut in two along the longest of the axes; where one has size 1 there, it belongs to both parts."""
    sizes = {axis: max(array.shape[axis] for array in arrays) for axis in over}
    axis = max(sizes, key=lambda axis: sizes[axis], default=None)
    if axis is None or sizes[axis] < 2:
        return [arrays]
    cut = sizes[axis] // 2
    halves: list[list[Reals]] = [
        list(np.split(array, [cut], axis)) if array.shape[axis] > 1 else [array, array] for array in arrays
    ]
    return list(zip(*halves, strict=True))


def _added(parts: Sequence[Reals]) -> Reals:
    """The parts' sum in float32, in order."""
    single = bits(_SINGLE)
    total = nearest(parts[0], single)
    for part in parts[1:]:
        total = nearest(total + nearest(part, single), single)
    return total


def verified(program: TensorProgram, blocks: Sequence[BlockGraph]) -> Verdict:
    """Are the kernels, one after the other, the same function as the program, and do they lose no digits?"""
    verdict = verify_topologies(program, [(block, None) for block in blocks])
    worse = loses_digits(program, blocks) if verdict.passed else None
    return replace(verdict, passed=False, reason=worse) if worse else verdict


def loses_digits(program: TensorProgram, blocks: Sequence[BlockGraph], seed: int | None = None) -> str | None:
    """How far kernels that run one after the other are off at inputs that the program computes well, in a sentence;
    None where they are not. Raises Malformed.

    seed: for tests; None takes fresh randomness from the operating system
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    cut = [(block, grid_axes(block)) for block in blocks]
    smaller, _ = assignments(program, cut)
    own = resize(program, smaller.sizes)
    schedules = [smaller.schedule(block, grid) for block, grid in cut]
    kernels = [(resize_block(block, smaller.sizes), how) for block, how in zip(blocks, schedules, strict=True)]
    full = list(zip(blocks, schedules, strict=True))
    off, is_same = _off(own, kernels, program, rng)
    if not is_same:  # but where the constant of a mean is that of what is added up
        off, _ = _off(*summing_as_at_full_size(own, kernels, program, full), program, rng)
    for name, times in off.items():
        if times > MOST:
            return (
                f"{name} loses digits: where terms cancel it is wrong by {times:.2g} times the program's own rounding"
            )
    return None


def _off(
    small: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    program: TensorProgram,
    rng: np.random.Generator,
) -> tuple[Mapping[str, float], bool]:
    """Output's tensor -> the kernels' error in the program's own; and whether they are the same function, as far as
    that matters."""
    coarsest = max((READ[tensor.dtype].epsilon for tensor in program.tensors), default=0.0) or _SINGLE
    storage, single = bits(coarsest), bits(_SINGLE)
    inputs = _drawn(small, rng)
    with np.errstate(all="ignore"):
        exact = evaluate_program(small, inputs, Smooth())
        eager = evaluate_program(small, inputs, OwnArithmetic(storage, storage))
        found = execute_kernels(kernels, inputs, RoundedArithmetic(max(storage, single), storage))
        off = {name: _worst(found[name], eager[name], value, storage) for name, value in exact.items()}
        is_same = True
        if max(off.values(), default=0.0) > MOST:
            graph = execute_kernels(kernels, inputs, Smooth())
            is_same = all(_worst(graph[name], eager[name], value, storage) <= MOST for name, value in exact.items())
    return off, is_same


def bits(epsilon: float) -> int:
    """Of the mantissa of a type whose roundings are wrong by at most `epsilon`, relatively."""
    return round(-log2(epsilon))


def nearest(x: Reals, bits: int) -> Reals:
    """Rounded to so many bits."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)


def _worst(graph: Reals, program: Reals, exact: Reals, storage: int) -> float:
    """The largest ratio of errors over the kinds of inputs, in root mean squares; draws beyond the range count not.
    What depends on no input, as a window of Gaussian weights, has a single draw.

    Half a unit in the last place is an error that any program may have. One that only repeats its inputs in these draws
    has none, as a softmax of which one logit is above all others by hundreds."""
    worst = 0.0
    graph, program, exact = np.broadcast_arrays(graph, program, exact)
    for ours, own, value in zip(*(np.array_split(one, 2) for one in (graph, program, exact)), strict=True):
        known = np.isfinite(ours) & np.isfinite(own) & np.isfinite(value)
        if bool(known.any()):
            least = float(np.square(value[known]).mean()) * 4.0 ** -(storage + 1)
            allowed = max(float(np.square((own - value)[known]).mean()), least, 1e-300)
            worst = max(worst, float(np.square((ours - value)[known]).mean()) / allowed)
    return worst**0.5


def _drawn(program: TensorProgram, rng: np.random.Generator) -> Mapping[str, Reals]:
    """[2 * draws, *tensor.shape]: normal numbers, then numbers that cancel."""
    home, numbers = homes(program), meant(program)
    placed: dict[str, Reals] = {}
    largest = max(prod(program.sizes[axis] for axis in op.axes) for op in program.ops)
    draws = min(_DRAWS, max(_LEAST_DRAWS, _ELEMENTS // largest))
    for number, name in enumerate(sorted(set(home.values()))):
        tensor = program.tensor(name)
        shape = (draws, *tensor.shape(program.sizes))
        normal = rng.standard_normal(shape)
        mirrored = _mirrored(program, tensor, rng.standard_normal(shape), -1.0 if number % 2 else 1.0, rng)
        both = np.concatenate((normal, mirrored))
        placed[name] = numbers[name].drawn(both) if name in numbers else _held(both, tensor.dtype)
    return {name: placed[owner] for name, owner in home.items()}


def _held(data: Reals, dtype: DType) -> Reals:
    """As a tensor of the type has it. Of whole numbers a third of the range is one."""
    kind = READ[dtype]
    if dtype == "bool":
        return (data > 0.0).astype(data.dtype)
    if not kind.is_whole:
        return nearest(data, bits(kind.epsilon) if kind.epsilon else _FEW_BITS)
    least = kind.least or 0.0
    return np.clip(np.round(data * ((kind.largest - least) / 6) + (kind.largest + least) / 2), least, kind.largest)


def _mirrored(program: TensorProgram, tensor: Tensor, data: Reals, sign: float, rng: np.random.Generator) -> Reals:
    """Along the first dimension that something is summed over, the second half repeats the first but for a little;
    what is left of an odd size is little."""
    reduced = {axis for op in program.ops if op.kind.reduces or op.kind.scans for axis in op.over}
    for position, dim in enumerate(tensor.dims, start=1):
        half = data.shape[position] // 2
        if half and reduced.intersection(dim):
            lanes = np.moveaxis(data, position, 0)
            lanes[half : 2 * half] = sign * lanes[:half] + _LEFT * rng.standard_normal(lanes[:half].shape)
            lanes[2 * half :] *= _LEFT
            break
    return data
