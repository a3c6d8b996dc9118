"""Inputs for the float test: normal, rows of many kinds (float_kinds.py), cancellation, ends that stand out, large
logits; laid out in memory as they will be.

Every tensor lies in a buffer of its own with NaN around it and in the gaps its strides leave, so that a load outside
the tensor shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import nan, prod
from typing import Literal

import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPARED, COMPUTED, READ, DType
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.search.topologies.softmax import is_shift_invariant
from mugraph.verification.across import Evaluation
from mugraph.verification.compared import meant
from mugraph.verification.evaluate import ancestors, arguments_of
from mugraph.verification.float_kinds import FAR, centred, far, others, with_kinds, with_spikes
from mugraph.verification.float_specials import SPECIALS, Special, put_specials
from mugraph.verification.float_ties import codes_of, of_ties
from mugraph.verification.pieces import LARGE, pieces
from mugraph.verification.roundings import TORCH_TYPES, Eager
from mugraph.verification.rows import reduced
from mugraph.verification.stored import held
from mugraph.verification.torch_reference import Value, largest, outputs

Scenario = Literal["normal", "rows", "cancellation", "ends", "large logits", "ties", "subnormal"] | Special
_GUARD = 1024  # elements; keeps the start of the tensor aligned
_LARGE = 200.0  # exp overflows float16 at 11 and float32 at 89
_CAPPED = 1.2  # times as large, at least, are logits of inputs that are larger by more
_FOLLOWS = 2.0  # times as large, at most, are logits that follow inputs which are made smaller, as the inputs are
_MODERATE = 12.0  # small enough that the largest logit does not hide all others
_HEADROOM = (16.0, 2.0)  # the second where no inputs have the first: a sum of many sigmoids is as large for all
_LEAST = 2.0**-10  # of numbers that have to be positive
_SUBNORMAL = 2.0**-18  # of float16, whose least normal number is 2^-14


@dataclass(frozen=True)
class Drawn:
    """inputs: tensor name -> tensor with the program's shapes, strides and types. eager: of each output, in its type,
    what eager PyTorch rounds it to."""

    inputs: dict[str, Tensor]
    eager: dict[str, Tensor]


def scenarios(program: TensorProgram) -> tuple[Scenario, ...]:
    found: list[Scenario] = ["normal", "rows", "cancellation", "ends"]
    if any("exp" in op.kind.primitives for op in program.ops):
        found.append("large logits")
    if codes_of(program) is not None:
        found.append("ties")
    # Of the other types the least normal number is that of float32, in which kernels compute: what is below is zero.
    if any(tensor.dtype == "f16" for tensor in program.tensors):
        found.append("subnormal")
    return (*found, *SPECIALS)


def make_inputs(program: TensorProgram, scenario: Scenario, generator: torch.Generator) -> Drawn | None:
    """On the generator's device. Tensors with one source, shape and layout are one tensor. None where the program's own
    values leave the range of its types however small the inputs are made, or there is no place for what is special."""
    if scenario in ("NaN", "infinite"):
        drawn = make_inputs(program, "normal", generator)
        if drawn is None or not put_specials(program, drawn.inputs, scenario, generator):
            return None
        return replace(drawn, eager=_rounded(program, drawn.inputs))
    owners: dict[tuple[str, tuple[int, ...], tuple[int, ...]], str] = {}
    home: dict[str, str] = {}
    for tensor in program.tensors:
        key = (tensor.source or f"tensor {tensor.name}", tensor.shape(program.sizes), tensor.strides)
        home[tensor.name] = owners.setdefault(key, tensor.name)
    numbers = meant(program)
    state = generator.get_state()
    positive = {home[name] for name in _below_positive(program)}
    signs = (False, True) if any(op.kind.opaque and op.kind.opaque.is_positive for op in program.ops) else (False,)
    # Logits of which a row sees none have no softmax, unless the program says what it is then.
    ways = (False, True) if any(op.kind.hides for op in program.ops) else (False,)
    attempts = list(product(_attempts(scenario), signs, ways))
    large = any(prod(tensor.shape(program.sizes)) > LARGE for tensor in program.tensors)
    bound = _LARGE if scenario in ("normal", "large logits") else _MODERATE
    # An exponential that no division normalises overflows: its logits are made smaller, as the other numbers are.
    follows = scenario == "large logits" and not is_shift_invariant(program.ops)

    def drawn_so(headroom: float, attempt: tuple[float, bool, float], is_positive: bool, mixed: bool) -> Drawn | None:
        reach, degenerate, factor = attempt
        generator.set_state(state)
        drawn = {
            name: drawn.mul_(factor)
            if (dtype := program.tensor(name).dtype) in COMPUTED
            else held(drawn, dtype, numbers.get(name), mixed=mixed)
            for number, name in enumerate(owners.values())
            for drawn in (_draw(program, program.tensor(name), scenario, number, generator, reach, degenerate),)
        }
        if is_positive:
            drawn |= {n: _positive(drawn[n], program.tensor(n).dtype) for n in positive}
        top = bound * factor**0.5 if follows else bound
        drawn = _bounded_logits(program, drawn, home, top, only_larger=scenario != "large logits")
        # Of gigabytes, none is held twice.
        placed = {name: place(drawn.pop(name), program.tensor(name), program.sizes) for name in list(drawn)}
        inputs = {name: placed[owner] for name, owner in home.items()}
        eager = _eager(program, inputs, headroom)
        return None if eager is None else Drawn(inputs, eager)

    for headroom in _HEADROOM:
        for number, attempt in enumerate(attempts):
            # Of gigabytes an attempt takes a second. What is too large where the inputs are least, is so for all.
            if number == len(signs) * len(ways) and large and drawn_so(headroom, *attempts[-1]) is None:
                break
            if (found := drawn_so(headroom, *attempt)) is not None:
                return found
    if positive and len(signs) == 1:  # below a root alone: of most, as of a sum of squares, the argument is positive
        for headroom, (attempt, _, mixed) in product(_HEADROOM, attempts):
            if (found := drawn_so(headroom, attempt, True, mixed)) is not None:
                return found
    return None


def _below_positive(program: TensorProgram) -> Iterator[str]:
    """Tensors on which the argument of a function of positive numbers depends, as of a logarithm or a root."""
    of_positive = [op for op in program.ops if (op.kind.opaque and op.kind.opaque.is_positive) or _is_root(op)]
    arguments = {name for op in of_positive for name in op.inputs}
    above = ancestors(program.ops, arguments)
    yield from (op.tensor for op in program.ops if op.kind is Kind.LOAD and op.name in above)


def _is_root(op: Op) -> bool:
    return "sqrt" in op.kind.primitives


def _positive(data: Tensor, dtype: DType) -> Tensor:
    if dtype == "bool":
        return data
    return data.abs().clamp_min(1.0) if READ[dtype].is_whole else held(data.abs() + _LEAST, dtype)


def _attempts(scenario: Scenario) -> Iterator[tuple[float, bool, float]]:
    """How large numbers may be, whether rows may be degenerate, and the factor of all numbers: one attempt after
    the other, until the program's own values stay in range. Large rows are made smaller first, because a common
    factor may take small rows below the range."""
    if scenario == "rows":
        for power in range(6):
            for degenerate in (True, False):
                yield 1000.0 / 4**power, degenerate, 1.0
    for power in range(12):
        yield 1.0, False, 4.0**-power


def _draw(
    program: TensorProgram,
    tensor: Layout,
    scenario: Scenario,
    number: int,
    generator: torch.Generator,
    reach: float,
    degenerate: bool,
) -> Tensor:
    """reach, degenerate: of `_attempts`"""
    shape = tuple(
        1 if stride == 0 else size for size, stride in zip(tensor.shape(program.sizes), tensor.strides, strict=True)
    )
    # Of gigabytes, in half the memory: no stored type has more digits.
    kind = torch.float32 if prod(shape) > LARGE else torch.float64
    data = torch.randn(shape, generator=generator, dtype=kind, device=generator.device)
    match scenario:
        case "rows":
            along = _rows_along(program, tensor)
            if along == tuple(range(len(shape))):
                return data
            kinds = centred(reach, degenerate) if _is_centred(program, tensor) else others(reach)
            return with_kinds(data, along, kinds)
        case "ends":
            return with_spikes(data, reduced(program, tensor), generator)
        case "cancellation":
            return _mirror(program, tensor, data, -1.0 if number % 2 else 1.0, generator)
        case "large logits":
            if number:
                return with_kinds(data, _rows_along(program, tensor), FAR)
            terms = prod(data.shape[dim] for dim in reduced(program, tensor))
            single = 3.0 if _is_centred(program, tensor) else 3.0 * terms**0.5
            return with_kinds(data, _rows_along(program, tensor), far(single))
        case "ties":
            return of_ties(program, tensor, generator)
        case "subnormal" if tensor.dtype == "f16" and number % 2 == 0:
            return data.mul_(_SUBNORMAL)
        case "normal" if any(op.fn or op.kind.opaque for op in program.ops):
            # Functions are curved around zero: products near 1, not near the root of how many they add up.
            terms = prod(data.shape[dim] for dim in reduced(program, tensor))
            return data.mul_(terms**-0.25)
        case _:
            return data


def _mirror(program: TensorProgram, tensor: Layout, data: Tensor, sign: float, generator: torch.Generator) -> Tensor:
    """The second half along a reduced dimension repeats the first, negated in every other tensor, up to 2^-4."""
    for position in reduced(program, tensor):
        half = data.shape[position] // 2
        if half:
            first = data.narrow(position, 0, half)
            noise = torch.randn(first.shape, generator=generator, dtype=data.dtype, device=generator.device)
            data.narrow(position, half, half).copy_(noise.div_(16).add_(first, alpha=sign))
            return data
    return data


def _rows_along(program: TensorProgram, tensor: Layout) -> tuple[int, ...]:
    """The dimensions of one of its rows: those reduced, of which a matrix has one at most; else all but the first."""
    along = reduced(program, tensor)
    if len(tensor.dims) > 1 and len(along) in (0, len(tensor.dims)):
        return tuple(range(1, len(tensor.dims)))
    return along


def _is_centred(program: TensorProgram, tensor: Layout) -> bool:
    """Whether the tensor's own numbers, not products of them, are summed, searched for a maximum, or arguments of a
    function."""
    plain = {op.name for op in program.ops if op.kind is Kind.LOAD and op.tensor == tensor.name}
    for op in program.ops:
        if plain.intersection(op.inputs):
            if op.kind.contracts:
                continue
            if op.kind.reduces or op.kind.scans or op.kind.primitives & {"exp", "unary", "opaque"}:
                return True
            plain.add(op.name)
    return False


def _bounded_logits(
    program: TensorProgram, drawn: dict[str, Tensor], home: Mapping[str, str], bound: float, *, only_larger: bool
) -> dict[str, Tensor]:
    """Scales the inputs behind the arguments of exp until the largest argument is near the bound, if it follows the
    inputs: what is capped, as c * tanh(x / c) is, does not. Sums over thousands of numbers are beyond what float64 has
    an exponential for. Where a number is added that does not follow, as -10000 for what is hidden, they are left as
    they were: they would vanish before the sum is near the bound."""
    arguments = arguments_of(program.ops, "exp")
    above = ancestors(program.ops, arguments)
    loads = (op for op in program.ops if op.kind is Kind.LOAD and op.name in above)
    scaled = {home[op.tensor] for op in loads if program.tensor(op.tensor).dtype not in COMPARED}
    before, factor = 0.0, 1.0
    for _ in range(8 if arguments else 0):
        inputs = {name: _expanded(drawn[owner], program, name) for name, owner in home.items()}
        top = 0.0
        parts = list(pieces(program, across=True))
        exact = Evaluation(program, inputs, parts, wanted=arguments)
        for piece in parts:
            values = exact.of(piece)
            # What is not seen is minus infinity.
            top = max(top, *(float(values[name].data.abs().nan_to_num(posinf=0.0).max()) for name in arguments))
        if not 0 < top < float("inf") or (0.5 < bound / top < 2):
            break
        if (only_larger and top < bound) or (factor > _CAPPED and top < _CAPPED * before):
            break
        if factor < 1.0 and top > _FOLLOWS * factor * before:
            for name in scaled:
                drawn[name] = drawn[name] / factor
            break
        before = top
        factor = min(8.0, max(0.001, (bound / top) ** 0.5))
        for name in scaled:
            drawn[name] = drawn[name].mul_(factor) if drawn[name].is_floating_point() else drawn[name] * factor
    return drawn


def _expanded(data: Tensor, program: TensorProgram, name: str) -> Tensor:
    return data.expand(program.tensor(name).shape(program.sizes))


def _eager(program: TensorProgram, inputs: Mapping[str, Tensor], headroom: float) -> dict[str, Tensor] | None:
    """What eager PyTorch would compute; None if it overflows or comes close to it. headroom: how many times larger its
    results may become"""
    types = {name: TORCH_TYPES[t.dtype] for name, t in program.outputs.items() if t.dtype in COMPUTED}
    hidden = _below_masks(program)

    def in_range(values: Mapping[str, Value]) -> bool:
        if largest({name: value for name, value in values.items() if name not in hidden}) == float("inf"):
            return False
        tops = {name: float(values[name].data.abs().max()) for name in types}
        return all(tops[name] * headroom < torch.finfo(kind).max for name, kind in types.items())

    return _rounded_if(program, inputs, in_range)


def _below_masks(program: TensorProgram) -> frozenset[str]:
    """Values that depend on logits of which a mask lets some be seen: those that are not are minus infinity, and a row
    of which none is seen has a softmax of no numbers."""
    found: set[str] = set()
    for op in program.ops:
        if op.kind.hides or not found.isdisjoint(op.inputs):
            found.add(op.name)
    return frozenset(found)


def _rounded(program: TensorProgram, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same, whatever it is."""
    found = _rounded_if(program, inputs, lambda _: True)
    assert found is not None
    return found


def _rounded_if(
    program: TensorProgram, inputs: Mapping[str, Tensor], holds: Callable[[Mapping[str, Value]], bool]
) -> dict[str, Tensor] | None:
    """None where `holds` says no of the values of a piece."""
    types = {tensor.name: TORCH_TYPES[tensor.dtype] for tensor in program.outputs.values()}
    found: dict[str, Tensor] = {}
    parts = list(pieces(program, across=True))
    eager = Evaluation(program, inputs, parts, Eager(program))
    for piece in parts:
        values = eager.of(piece)
        if not holds(values):
            return None
        # The output's own rounding belongs to the eager program as well.
        for name, data in outputs(piece.program, values).items():
            if piece.axis is None:
                found[name] = data.to(types[name])
                continue
            layout = program.tensor(name)
            if name not in found:
                found[name] = torch.empty(layout.shape(program.sizes), dtype=types[name], device=data.device)
            piece.of(layout, found[name]).copy_(data)
    return found


def place(data: Tensor, tensor: Layout, sizes: Sizes) -> Tensor:
    """The data (size 1 in expanded dimensions) in the tensor's type and strides, in the middle of a buffer of NaN, as
    far from a multiple of 16 bytes as there."""
    reach = sum((size - 1) * stride for size, stride in zip(data.shape, tensor.strides, strict=True)) + 1
    kind = TORCH_TYPES[tensor.dtype]
    read = READ[tensor.dtype]
    outside = torch.full((), read.largest if read.is_whole else nan, device=data.device).to(kind)
    buffer = outside.expand(reach + 2 * _GUARD + tensor.skew).clone()
    view = buffer.as_strided(data.shape, tensor.strides, _GUARD + tensor.skew)
    view.copy_(data)
    return view.expand(tensor.shape(sizes))
