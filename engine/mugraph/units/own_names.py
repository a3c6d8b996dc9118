"""Names of tensors that mean one value each, in all search units of a region together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.region import Part, PlainCalls, SearchUnit
from mugraph.ir.tensors import Tensor


def with_own_names(units: Sequence[Part]) -> tuple[Part, ...]:
    """The units with tensors renamed so that in all of them together one name means one value."""
    return _with_own_names(units, {})


def _with_own_names(units: Sequence[Part], owner: dict[str, int]) -> tuple[Part, ...]:
    """owner: name -> value, of the names given so far"""
    renamed: list[Part] = []
    for unit in units:
        if isinstance(unit, PlainCalls):
            renamed.append(unit)
            continue
        ties = {**unit.inputs, **unit.outputs}
        new: dict[str, str] = {}
        for name, value in ties.items():
            fresh, number = name, 2
            while owner.setdefault(fresh, value) != value or fresh in new.values():
                fresh, number = f"{name}_{number}", number + 1
            new[name] = fresh
        unit = _renamed(unit, new)
        renamed.append(replace(unit, apart=_with_own_names(unit.apart, owner)) if unit.apart else unit)
    return tuple(renamed)


def _renamed(unit: SearchUnit, new: Mapping[str, str]) -> SearchUnit:
    if all(old == fresh for old, fresh in new.items()):
        return unit
    program = unit.program

    def tensor(old: Tensor) -> Tensor:
        return replace(old, name=new.get(old.name, old.name))

    program = replace(
        program,
        tensors=tuple(tensor(t) for t in program.tensors),
        ops=tuple(replace(op, tensor=new.get(op.tensor, op.tensor)) for op in program.ops),
        outputs={value: tensor(t) for value, t in program.outputs.items()},
    )
    return replace(
        unit,
        program=program,
        inputs={new[name]: value for name, value in unit.inputs.items()},
        outputs={new[name]: value for name, value in unit.outputs.items()},
    )
