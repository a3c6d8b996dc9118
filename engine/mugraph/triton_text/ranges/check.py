"""Is the use of memory of a launcher and its kernels right for every size of a range?

Sizes, program ids, lanes and loop iterations are unknown integers, and z3 proves what must hold of them. What the
kernels compute is checked elsewhere: over the fields, at some of the sizes (triton_text/check.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.ir.dtypes import READ, WRITTEN
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.claims import Claims, NotProved
from mugraph.triton_text.ranges.formulas import Formula
from mugraph.triton_text.ranges.launcher import Declared, HostTensor, LauncherReading, Ways
from mugraph.triton_text.ranges.layouts import Sizes, layout, shape_of, strides_of
from mugraph.triton_text.ranges.masks import triangles
from mugraph.triton_text.ranges.poly import ZERO, Poly, number
from mugraph.triton_text.ranges.proved import Proved
from mugraph.triton_text.ranges.prover import WAITED_MS, Prover
from mugraph.triton_text.ranges.values import Memory
from mugraph.triton_text.refusals import Refused, Unreadable, Wrong
from mugraph.triton_text.source import listed, read_module

_MOST_WAYS = 64
_PROVED = Proved()
"""By this process. A proof holds of any text."""


@dataclass(frozen=True)
class Varying:
    """Sizes that vary.

    axes:   axis -> name of a size, and how many times it the axis is
    beyond: a size -> the axis that it is larger than; what is said of it is by how much
    """

    sizes: Mapping[str, tuple[int, int]]
    axes: Mapping[str, tuple[str, int]]
    beyond: Mapping[str, str] = field(default_factory=dict[str, str])

    def called(self, name: str) -> str:
        """What is said of a size: by how much it is larger than another, where it is."""
        return f"{name} - {self.beyond[name]}" if name in self.beyond else name


@dataclass(frozen=True)
class RangeVerdict:
    """
    check:  as refusals.Wrong says; "unread" for what is not read, "unproved" for what took too long
    claims: that were proved; ways: through the launcher, one for each schedule
    """

    passed: bool
    reason: str | None = None
    check: str = ""
    line: int = 0
    claims: int = 0
    ways: int = 0
    asked: int = 0
    where: Mapping[str, object] = field(default_factory=dict[str, object])


def check_ranges(
    program: TensorProgram,
    source: KernelSource,
    varying: Varying,
    text: str | None = None,
    waited_ms: int = WAITED_MS,
) -> RangeVerdict:
    """text: of the source, or what is looked at in its place"""
    prover = Prover(waited_ms, _PROVED)
    reading = _Reading(program, source, varying, prover)
    try:
        reading.run(source.standalone() if text is None else text)
    except Unreadable as error:
        return RangeVerdict(False, f"the text cannot be read: {error}", "unread", error.line)
    except NotProved as error:
        return RangeVerdict(False, str(error), "unproved", error.line)
    except Wrong as error:
        return RangeVerdict(False, str(error), error.check, error.line, where=error.where)
    return RangeVerdict(True, claims=reading.claims, ways=reading.ways, asked=prover.asked)


class _Reading:
    def __init__(self, program: TensorProgram, source: KernelSource, varying: Varying, prover: Prover) -> None:
        self._program, self._source, self._varying, self._prover = program, source, varying, prover
        self._largest = {varying.called(name): largest for name, (_, largest) in varying.sizes.items()}
        self.claims, self.ways = 0, 0

    def run(self, text: str) -> None:
        """Raises Refused."""
        module = read_module(text)
        launcher = f"launch_{self._source.name}"
        if launcher not in module.functions:
            raise Unreadable(f"the text has no function {launcher}")
        atoms = Atoms()
        sizes = self._sizes(atoms)
        ways = Ways(lambda known: self._prover.model([*known, *_facts(atoms, known)]) is not None)
        while ways.another():
            self.ways += 1
            if self.ways > _MOST_WAYS:
                raise Unreadable("there are too many ways through the launcher")
            reading = LauncherReading(atoms, ways, sizes, self._declared)
            given = [self._input(tensor.name, sizes) for tensor in self._source.inputs]
            result = reading.evaluator.run(module.functions[launcher], given, {})
            self._check_outputs(listed(result), sizes)
            masks = triangles(self._program, sizes)
            claims = Claims(atoms, self._prover, tuple(ways.known), self._largest, masks)
            for launch in reading.launches:
                try:
                    claims.check(launch)
                except Refused as error:
                    error.line = error.line or reading.evaluator.line
                    raise
            self.claims += claims.proved

    def _sizes(self, atoms: Atoms) -> Sizes:
        beyond = self._varying.beyond
        named = {name: atoms.size(self._varying.called(name), *ends) for name, ends in self._varying.sizes.items()}
        known = {axis: n for kernel in self._source.every for axis, n in kernel.sizes.items()}
        chosen = {split for kernel in self._source.every for split in kernel.divided.values()}
        found: dict[str, Poly] = {
            axis: number(n) for axis, n in {**known, **self._program.sizes}.items() if axis not in chosen
        }
        found |= {axis: number(factor) * named[name] for axis, (name, factor) in self._varying.axes.items()}
        more = {name: found[by] for name, by in beyond.items()}
        for axis, (name, factor) in self._varying.axes.items():
            found[axis] = found[axis] + number(factor) * more.get(name, ZERO)
        return found

    @property
    def _declared(self) -> Declared:
        return {
            kernel.function: dict(zip(kernel.pointers, (*kernel.inputs, *kernel.outputs), strict=True))
            for kernel in self._source.every
            if kernel.library is None
        }

    def _input(self, name: str, sizes: Sizes) -> HostTensor:
        tensor = next(one for one in self._source.inputs if one.name == name)
        largest = {**{a: n for kernel in self._source.every for a, n in kernel.sizes.items()}, **self._program.sizes}
        shape = shape_of(tensor, largest, sizes)
        axes = layout(tensor.dims, shape, strides_of(tensor, largest, sizes), sizes, tensor.windows, largest)
        says_rows = any(name == index.name for other in self._source.inputs for index in other.indices)
        return HostTensor(Memory(name, READ[tensor.dtype].torch, shape, axes, given=True, says_rows=says_rows), shape)

    def _check_outputs(self, found: tuple[object, ...], sizes: Sizes) -> None:
        if len(found) != len(self._source.outputs):
            raise Wrong("type", f"the launcher returns {len(found)} tensors, not {len(self._source.outputs)}")
        for tensor, result in zip(self._source.outputs, found, strict=True):
            if not isinstance(result, HostTensor) or result.memory.given or result.turned:
                raise Wrong("type", f"{tensor.name}, which the launcher returns, is no tensor of its own")
            if result.shape != shape_of(tensor, {}, sizes) or result.memory.kind != WRITTEN[tensor.dtype].torch:
                raise Wrong("type", f"{tensor.name} has another shape or type", result.memory.line)
            if len(result.memory.written) != 1:
                raise Wrong("unwritten", f"{tensor.name} is never written")


def _facts(atoms: Atoms, known: Sequence[Formula]) -> list[Formula]:
    return atoms.facts({name for formula in known for name in formula.atoms})
