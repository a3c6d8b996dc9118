"""Names that do not matter: two search units that differ in them alone have one result.

A decoder's second layer computes what its first one does, under other names. A program's canonical form names its axes,
tensors and values by their places in it; what was found for it is kept under these names, and read under the unit's
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mugraph.ir.block import BlockGraph, Candidate, Loop
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, Tensor
from mugraph.verify.verdict import Verdict

_AXIS_IN_WORDS = re.compile(r"\b\w+(?=/\d)|(?<=\bfor )\w+(?=:)")
_NAME_IN_REASON = re.compile(r"(?:(?<=^)|(?<=: ))\w+(?= )")


@dataclass(frozen=True)
class Renaming:
    """New names of axes, tensors, values, and of what the user's code calls tensors. Whatever else a candidate has was
    named after these by the search (`k_split`, `xw_part`), and goes with them."""

    axes: Mapping[str, str]
    tensors: Mapping[str, str]
    values: Mapping[str, str]
    sources: Mapping[str, str]

    @property
    def inverse(self) -> Renaming:
        return Renaming(*({new: old for old, new in names.items()} for names in self._all))

    @property
    def _all(self) -> tuple[Mapping[str, str], ...]:
        return self.axes, self.tensors, self.values, self.sources

    def program(self, program: TensorProgram, name: str) -> TensorProgram:
        """The whole program; every name of it must be known here."""
        names = _Names(self)
        return TensorProgram(
            name,
            {names.axis(axis): program.sizes[axis] for axis in self.axes},
            tuple(names.tensor(tensor) for tensor in program.tensors),
            tuple(names.op(op) for op in program.ops),
            {names.value(value): names.tensor(tensor) for value, tensor in program.outputs.items()},
        )

    def candidate(self, candidate: Candidate) -> Candidate:
        """Its kernels, whose own names stay."""
        return _candidate(candidate, _Names(self))

    def verdict(self, verdict: Verdict) -> Verdict:
        names = _Names(self)
        sizes = tuple({names.axis(axis): size for axis, size in one.items()} for one in verdict.sizes)
        return replace(
            verdict, sizes=sizes, float_sizes={names.axis(axis): size for axis, size in verdict.float_sizes.items()}
        )

    def words(self, words: str) -> str:
        """A candidate's (events.Considered): axes stand before the slash of a tile and after `for`."""
        names = _Names(self)
        return _AXIS_IN_WORDS.sub(lambda found: names.axis(found[0]), words)

    def reason(self, reason: str) -> str:
        """Why there is none: a value it speaks of begins the sentence."""
        known = {**self.values, **self.tensors}
        return _NAME_IN_REASON.sub(lambda found: known.get(found[0], found[0]), reason)


def canonical(program: TensorProgram) -> tuple[TensorProgram, Renaming]:
    """The program with names by place, equal for all that differ in names alone; and the names it has been given."""
    tensors = (*program.tensors, *program.outputs.values())
    renaming = Renaming(
        _numbered("a", (axis for tensor in tensors for axis in tensor.axes)),
        _numbered("t", (tensor.name for tensor in tensors)),
        _numbered("v", (op.name for op in program.ops)),
        _numbered("s", (tensor.source for tensor in tensors if tensor.source)),
    )
    return renaming.program(program, "program"), renaming


def _numbered(letter: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{letter}{number}" for number, name in enumerate(dict.fromkeys(names))}


@dataclass
class _Names:
    """One renaming at work. Names that the search made are kept apart from one another and from all that are known."""

    renaming: Renaming
    _made: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def axis(self, name: str) -> str:
        return self._name("axis", name, self.renaming.axes, self.renaming.axes)

    def value(self, name: str) -> str:
        return self._name("value", name, self.renaming.values, self.renaming.values)

    def dims(self, dims: Dims) -> Dims:
        return tuple(tuple(self.axis(axis) for axis in dim) for dim in dims)

    def tensor_name(self, name: str) -> str:
        return self._name("tensor", name, self.renaming.tensors, self.renaming.values)

    def tensor(self, tensor: Tensor) -> Tensor:
        source = self.renaming.sources.get(tensor.source, tensor.source)
        return replace(tensor, name=self.tensor_name(tensor.name), dims=self.dims(tensor.dims), source=source)

    def op(self, op: Op) -> Op:
        return replace(
            op,
            name=self.value(op.name),
            inputs=tuple(self.value(name) for name in op.inputs),
            axes=tuple(sorted(self.axis(axis) for axis in op.axes)),
            over=tuple(sorted(self.axis(axis) for axis in op.over)),
            tensor=self.tensor_name(op.tensor) if op.tensor else "",
            rows=tuple(self.axis(axis) for axis in op.rows),
            columns=tuple(self.axis(axis) for axis in op.columns),
        )

    def _name(self, kind: str, name: str, known: Mapping[str, str], parts: Mapping[str, str]) -> str:
        if name in known:
            return known[name]
        if (kind, name) not in self._made:
            wanted = fresh = _by_parts(name, parts)
            taken = {*known.values(), *(made for (other, _), made in self._made.items() if other == kind)}
            number = 2
            while fresh in taken:
                fresh, number = f"{wanted}_{number}", number + 1
            self._made[kind, name] = fresh
        return self._made[kind, name]


def _by_parts(name: str, known: Mapping[str, str]) -> str:
    """`xw_part` -> `qk_part`: the longest known names between underscores, others as they are."""
    words = name.split("_")
    found: list[str] = []
    at = 0
    while at < len(words):
        ends = (end for end in range(len(words), at, -1) if "_".join(words[at:end]) in known)
        end = next(ends, None)
        found.append(words[at] if end is None else known["_".join(words[at:end])])
        at = at + 1 if end is None else end
    return "_".join(found)


def _candidate(candidate: Candidate, names: _Names) -> Candidate:
    block, schedule = candidate.block, candidate.schedule
    # Values before tensors: a tensor that one kernel hands to the next is named after the value in it.
    ops = tuple(names.op(op) for op in block.ops)
    renamed = BlockGraph(
        block.name,
        {names.axis(axis): size for axis, size in block.sizes.items()},
        tuple(names.tensor(tensor) for tensor in block.tensors),
        ops,
        _loops(block.loops, names),
    )
    scheduled = replace(
        schedule,
        grid=tuple((names.axis(axis), tile) for axis, tile in schedule.grid),
        loops={names.axis(axis): tile for axis, tile in schedule.loops.items()},
    )
    then = _candidate(candidate.then, names) if candidate.then is not None else None
    return Candidate(renamed, scheduled, candidate.estimate_us, then)


def _loops(loops: tuple[Loop, ...], names: _Names) -> tuple[Loop, ...]:
    return tuple(Loop(names.axis(loop.axis), _loops(loop.body, names)) for loop in loops)
