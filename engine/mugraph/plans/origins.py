"""Which code of the user an operator of a μGraph comes from.

A search moves operators, it does not mark them, so their origin is found again: an operator that a kernel shares with
the traced program comes from the call that it is part of there. Where the search has rewritten what an operator is
applied to, it is taken for the program's operator of the same kind whose operands read most of the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.ir.ops import Kind, Op
from mugraph.ir.region import Range, SearchUnit
from mugraph.kinds import accumulator
from mugraph.plans.plan import KernelStep, RegionPlan

_UNMOVED = (Kind.LOAD, Kind.CONST, Kind.STORE)


@dataclass(frozen=True)
class Origins:
    """Of one kernel. ops: value -> places in the source, where its operator is written; tensors: those that read or
    write it. call: of a library kernel."""

    ops: Mapping[str, tuple[Range, ...]] = field(default_factory=dict[str, tuple[Range, ...]])
    tensors: Mapping[str, tuple[Range, ...]] = field(default_factory=dict[str, tuple[Range, ...]])
    call: tuple[Range, ...] = ()


@dataclass(frozen=True)
class _Value:
    """What an operator works on. leaves: the inputs and constants it is computed from, through whatever else; kinds: of
    the operators on the way."""

    op: Op
    operands: tuple[frozenset[str], ...]
    leaves: frozenset[str]
    kinds: frozenset[str]


def origins(plan: RegionPlan) -> dict[str, Origins]:
    """By the name of the kernel in the plan's μGraph."""
    found: dict[str, Origins] = {}
    kernels = iter(plan.mugraph.kernels)
    for step in plan.steps:
        if isinstance(step, KernelStep):
            drawn = [next(kernels) for _ in step.kernels]
            found.update(_of_kernels(step.unit, drawn))
        else:
            found.update({next(kernels).name: Origins(call=(call.range,)) for call in step.calls})
    return found


def _of_kernels(unit: SearchUnit, kernels: Sequence[GraphKernel | LibraryKernel]) -> dict[str, Origins]:
    source = [value for value in _values(unit.program.ops, {}).values() if value.op.kind not in _UNMOVED]
    handed: dict[str, _Value] = {}
    written: dict[str, frozenset[str]] = {}  # tensor that an earlier kernel has written -> the program's operators
    found: dict[str, Origins] = {}
    for kernel in kernels:
        if kernel.block is None:
            continue
        values = _values(kernel.block.ops, handed)
        ops: dict[str, frozenset[str]] = {}  # value -> the program's operators
        tensors: dict[str, frozenset[str]] = {}
        for op in kernel.block.ops:
            if op.kind is Kind.LOAD and op.tensor in written:
                ops[op.name] = written[op.tensor]
            elif op.kind not in _UNMOVED:
                # Over an axis that the program does not have: one that was cut for this kernel alone.
                rest = not unit.program.sizes.keys() & set(op.over) and _continues(op, values, written)
                closest = frozenset[str]() if rest else _closest(values[op.name], source)
                ops[op.name] = closest or _of_operands(op, ops)
                for name in op.inputs:
                    if values[name].op.kind is Kind.LOAD:
                        tensor = values[name].op.tensor
                        tensors[tensor] = tensors.get(tensor, frozenset()) | ops[op.name]
            elif op.kind is Kind.STORE:
                tensors[op.tensor] = _of_operands(op, ops)
                handed[op.tensor] = values[op.inputs[0]]
        written |= tensors
        found[kernel.name] = Origins(
            {name: _places(unit, names) for name, names in ops.items()},
            {name: _places(unit, names) for name, names in tensors.items()},
            _places(unit, _of_operands(kernel.block.ops[-1], ops)) if isinstance(kernel, LibraryKernel) else (),
        )
    return found


def _values(ops: Sequence[Op], handed: Mapping[str, _Value]) -> dict[str, _Value]:
    """handed: tensors that an earlier kernel has written."""
    values: dict[str, _Value] = {}
    for op in ops:
        inputs = [values[name] for name in op.inputs]
        if op.kind is Kind.LOAD and op.tensor in handed:
            before = handed[op.tensor]
            values[op.name] = _Value(op, (), before.leaves, before.kinds)
            continue
        own = {op.tensor} if op.kind is Kind.LOAD else {f"={op.value!r}"} if op.kind is Kind.CONST else set[str]()
        own |= {f"{op.kind} {op.value!r}"} if op.kind.of_places else set[str]()
        values[op.name] = _Value(
            op,
            tuple(value.leaves for value in inputs),
            frozenset(own).union(*(value.leaves for value in inputs)),
            frozenset({f"{op.kind} {op.fn}"}).union(*(value.kinds for value in inputs)),
        )
    return values


def _continues(op: Op, values: Mapping[str, _Value], written: Mapping[str, frozenset[str]]) -> bool:
    """Whether it reduces what a reduction has left unfinished."""
    if not _reduces(op) or op.kind.arity > 1:
        return False
    before = values[op.inputs[0]].op
    return _reduces(before) or (before.kind is Kind.LOAD and before.tensor in written)


def _reduces(op: Op) -> bool:
    return op.kind.reduces or op.kind is Kind.ACCUM


def _closest(value: _Value, source: Sequence[_Value]) -> frozenset[str]:
    """The program's operators it may be, several where nothing tells them apart."""
    scores = {other.op.name: _likeness(value, other) for other in source if _alike(value.op, other.op)}
    best = max(scores.values(), default=None)
    return frozenset(name for name, score in scores.items() if score == best)


def _alike(op: Op, other: Op) -> bool:
    """A loop's accumulator is part of a sum, of a product or of a maximum, whichever the loop cuts."""
    if _reduces(op) and _reduces(other):
        return op.kind is other.kind or (op.kind is Kind.ACCUM and other.kind.accumulator == accumulator(op.fn))
    return (op.kind, op.fn) == (other.kind, other.fn)


def _likeness(value: _Value, other: _Value) -> tuple[float, ...]:
    over, others = frozenset(value.op.over), frozenset(other.op.over)
    return (
        _overlap(over, others) if _reduces(value.op) else 0.0,
        _operands(value, other),
        _overlap(value.kinds, other.kinds),
        _overlap(frozenset(value.op.axes), frozenset(other.op.axes)),
    )


def _operands(value: _Value, other: _Value) -> float:
    if len(value.operands) != 2 or len(other.operands) != 2:
        return _overlap(value.leaves, other.leaves)
    (a, b), (c, d) = value.operands, other.operands
    return max(_overlap(a, c) + _overlap(b, d), _overlap(a, d) + _overlap(b, c)) / 2


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _of_operands(op: Op, ops: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(ops.get(name, frozenset()) for name in op.inputs))


def _places(unit: SearchUnit, names: frozenset[str]) -> tuple[Range, ...]:
    calls = sorted({position for name in names for position in unit.origins.get(name, ())})
    return tuple(dict.fromkeys(unit.calls[position].range for position in calls))
