"""Search units that do not depend on one another as one, for kernels that are launched together.

Names keep their meaning: an axis, a tensor or a value gets another name where the name stands for something else in a
unit before. What several units read is one tensor, if each has the same dimensions of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mugraph.ir.names import numbered, unused
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Call, SearchUnit
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.renaming import Names, Renaming, every_tensor
from mugraph.ir.windows import Window

T = TypeVar("T")


class NotOne(Exception):
    """Why units cannot be one, in a sentence."""


def united(units: Sequence[SearchUnit], name: str) -> tuple[SearchUnit, tuple[Renaming, ...]]:
    """One unit, whose program has this name; and how the names of each have changed. Raises NotOne."""
    for unit in units:
        if unit.program.least or unit.varying or unit.general_views is not None:
            raise NotOne(f"{unit.program.name} has a size that varies.")
    whole = _Whole()
    renamings = tuple(whole.add(unit) for unit in units)
    calls = _once(call for unit in units for call in unit.calls)
    places = {id(call): at for at, call in enumerate(calls)}
    first = {call.outputs: at for at, call in enumerate(calls)}
    origins = {
        names.values[op]: tuple(places.get(id(unit.calls[at]), first[unit.calls[at].outputs]) for at in positions)
        for unit, names in zip(units, renamings, strict=True)
        for op, positions in unit.origins.items()
        if op in names.values
    }
    program = TensorProgram(name, whole.sizes, tuple(whole.inputs.values()), tuple(whole.ops), whole.outputs)
    pairs = [*zip(units, renamings, strict=True)]
    unit = SearchUnit(
        program,
        {names.tensors[own]: value for unit, names in pairs for own, value in unit.inputs.items()},
        {names.tensors[own]: value for unit, names in pairs for own, value in unit.outputs.items()},
        calls,
        origins,
        views=_once(call for unit in units for call in unit.views),
        view_values=_all(unit.view_values for unit in units),
        viewed=_all(unit.viewed for unit in units),
        values=_all(unit.values for unit in units),
        laid=_all(unit.laid for unit in units),
    )
    return unit, renamings


@dataclass
class _Whole:
    """The program so far. loads: tensor -> the value that it is loaded as. values: of tensors, in the region"""

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    indices: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    outputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    ops: list[Op] = field(default_factory=list[Op])
    loads: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, unit: SearchUnit) -> Renaming:
        program = unit.program
        others = {axis for axis, size in self.sizes.items() if program.sizes.get(axis, size) != size}
        axes = _apart(program.sizes, others, self.sizes)
        tensors = self._tensors(unit, axes)
        shared = {own: new for own, new in tensors.items() if own in unit.inputs and new in self.inputs}
        loads = {op.name: self.loads[shared[op.tensor]] for op in program.ops if op.tensor in shared}
        taken = {op.name for op in self.ops}
        values = loads | _apart([op.name for op in program.ops if op.name not in loads], taken, taken)
        old = Names(tuple(values), tuple(axes), tuple(tensors))
        new = Names(tuple(values.values()), tuple(axes.values()), tuple(tensors.values()))
        renaming = Renaming(old, new)
        renamed = renaming.program(program, program.name)
        self.sizes |= renamed.sizes
        self.inputs |= {tensor.name: tensor for tensor in renamed.tensors}
        self.indices |= {index.name: index for index in renamed.indices}
        self.outputs |= renamed.outputs
        self.ops += [op for op in renamed.ops if op.name not in taken]
        self.loads |= {op.tensor: op.name for op in renamed.ops if op.kind is Kind.LOAD}
        self.values |= {tensors[own]: value for own, value in {**unit.inputs, **unit.outputs}.items()}
        return renaming

    def _tensors(self, unit: SearchUnit, axes: Mapping[str, str]) -> dict[str, str]:
        """With the name that the same tensor has in a unit before."""
        program = unit.program
        taken = {tensor.name for tensor in (*self.inputs.values(), *self.indices.values(), *self.outputs.values())}
        found: dict[str, str] = {}
        for known, tensors in ((self.indices, program.indices), (self.inputs, program.tensors)):
            for tensor in tensors:
                dims = tuple(tuple(axes[axis] for axis in dim) for dim in tensor.dims)
                windows = tuple(_by(window, found) for window in tensor.windows)
                value = unit.inputs[tensor.name]
                same = (
                    name
                    for name, other in known.items()
                    if self.values[name] == value and other == replace(tensor, name=name, dims=dims, windows=windows)
                )
                name = next(same, None)
                if name is not None and name not in found.values():
                    found[tensor.name] = name
        own = [tensor.name for tensor in every_tensor(program) if tensor.name not in found]
        return found | _apart(own, {*taken, *found.values()}, taken)


def _by(window: Window, names: Mapping[str, str]) -> Window:
    """With the name that its index has in units before; none, if it has none."""
    one = window.lookup
    return window if one is None else replace(window, lookup=replace(one, name=names.get(one.name, "")))


def _apart(names: Collection[str], others: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Another name for each that is among `others`: none of these, of `taken`, or of the names themselves."""
    found = {name: name for name in names if name not in others}
    for name in names:
        if name not in found:
            found[name] = unused(numbered(name), {*others, *taken, *names, *found.values()})
    return {name: found[name] for name in names}


def _once(calls: Iterable[Call]) -> tuple[Call, ...]:
    """Several units may have the same call."""
    return tuple({call.outputs: call for call in calls}.values())


def _all(parts: Iterable[Mapping[int, T]]) -> dict[int, T]:
    return {key: value for part in parts for key, value in part.items()}
