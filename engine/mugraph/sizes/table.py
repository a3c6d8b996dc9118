"""A kernel with a dynamic size at several sizes: programs to test it with, and the schedules that its launcher chooses
among.

One kernel text serves every size of the range. A launch may differ in tiles, warps and stages, by one size: where
several vary, by that with the most different sizes. The cost model proposes schedules; code generation says whether the
text stays the same under them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, inf, log2

from mugraph.codegen.launcher import launcher_text
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.kernel import KernelSource, Launch, Rejected
from mugraph.ir.library import library_call
from mugraph.ir.parts import parts_of, sizes_in_parts
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.search.schedules.cost import estimate_call_us, estimate_library_us
from mugraph.search.schedules.sizes import ScheduleLimits, fits, schedules
from mugraph.search.schedules.tiles import Shape
from mugraph.sizes.in_parts import PartSchedules, in_order, kind_of
from mugraph.sizes.possible import can_be
from mugraph.targets import Target
from mugraph.verification.verdict import Verdict

TRIED = 12
"""Schedules for one size, the best by estimate, that are lowered to see whether the kernel's text stays the same."""
ROWS = 8
"""Sizes that are looked at, at most. Neighbours with equal schedules become one row."""

Kernels = Sequence[tuple[BlockGraph, Schedule]]
Choice = tuple[float, Launch, Schedule]
"""Of one kernel at a size, with the estimate in microseconds."""


def steps_of(program: TensorProgram, group: Sequence[str] | None = None) -> tuple[int, int]:
    """The least and the largest step. Every dynamic axis of a group is a multiple of its step; (1, 1) without one.

    group: axes with one size; where it is not given, those of the size that matters most
    """
    axes = program.leading if group is None else group
    largest = gcd(*(program.sizes[axis] for axis in axes)) if axes else 1
    least = max((program.least[axis] * largest // program.sizes[axis] for axis in axes), default=1)
    return max(1, least), largest


def sizes_at(program: TensorProgram, step: int) -> dict[str, int]:
    """The program's sizes with the axes of the size that matters most at a step; others are the largest that may be
    beside it."""
    return _possible(program, (step, *(steps_of(program, group)[1] for group in program.varying_together[1:])))


def _possible(program: TensorProgram, steps: Sequence[int]) -> dict[str, int]:
    """The sizes at a step of each size that varies. Where these cannot be, as of more queries than keys, the
    sizes after the first are so much smaller, or larger, that they can."""
    groups = program.varying_together
    if not groups:
        return dict(program.sizes)
    first, *others = steps
    most = [steps_of(program, group)[1] for group in groups[1:]]
    smaller = ([max(1, step >> by) for step in others] for by in range(max(most, default=1).bit_length()))
    larger = ([min(end, step << by) for step, end in zip(others, most, strict=True)] for by in range(1, 32))
    found = _at_steps(program, steps)
    if can_be(program, found):
        return found
    tried = (_at_steps(program, (first, *rest)) for rest in (*smaller, *larger))
    return next((at for at in tried if can_be(program, at)), found)


def _at_steps(program: TensorProgram, steps: Sequence[int]) -> dict[str, int]:
    sizes = dict(program.sizes)
    for group, step in zip(program.varying_together, steps, strict=True):
        sizes |= {axis: program.sizes[axis] // steps_of(program, group)[1] * step for axis in group}
    return sizes


def step_of(program: TensorProgram, small: TensorProgram) -> int:
    """The step at which the program has the sizes of `small`."""
    _, largest = steps_of(program)
    return next((small.sizes[axis] * largest // program.sizes[axis] for axis in program.leading), 1)


def tested_steps(program: TensorProgram) -> tuple[int, ...]:
    """Steps that a kernel is tested at: the least, a ragged one in the middle, the largest."""
    return _steps(program, program.leading) if program.least else (1,)


def _steps(program: TensorProgram, group: Sequence[str]) -> tuple[int, ...]:
    _, largest = steps_of(program, group)
    first = _first_step(program, group)
    return tuple(sorted({first, max(first, largest // 2 + 1 - (largest // 2) % 2), largest}))


def _first_step(program: TensorProgram, group: Sequence[str]) -> int:
    """The least step, or that from which on each dimension that is read through a window has an element, as that of a
    cache to which one more row is joined."""
    least, largest = steps_of(program, group)
    needed = [
        -(-(window.pad - window.rest + 1) * largest // program.sizes[axis])
        for tensor in program.tensors
        for window in tensor.windows
        if not window.keeps and not window.by
        for axis in tensor.slid.intersection(group, tensor.dims[window.dim])
    ]
    return max((least, *needed))


def tested_sizes(program: TensorProgram) -> tuple[Mapping[str, int], ...]:
    """Sizes of the program that a kernel is tested at, the largest last. Of several that vary, all are the least, in
    the middle, and the largest together; and the first is the least while the others are the largest, and the other
    way round."""
    groups = program.varying_together
    steps = [_steps(program, group) for group in groups]
    points = [[own[min(at, len(own) - 1)] for own in steps] for at in range(3)]
    if len(groups) > 1:
        first, *others = steps
        points[2:2] = [[first[0], *(own[-1] for own in others)], [first[-1], *(own[0] for own in others)]]
    found: dict[tuple[int, ...], Mapping[str, int]] = {}
    for point in points:
        sizes = _possible(program, point)
        found[tuple(sizes.values())] = sizes
    return tuple(found.values())


def at_tested_steps(
    program: TensorProgram, kernels: Kernels
) -> list[tuple[TensorProgram, list[tuple[BlockGraph, Schedule]]]]:
    """The program and its kernels at each of the sizes that a kernel is tested with."""
    return [at_sizes(program, kernels, sizes) for sizes in tested_sizes(program)]


def at_step(
    program: TensorProgram, kernels: Kernels, step: int
) -> tuple[TensorProgram, list[tuple[BlockGraph, Schedule]]]:
    """The program and its kernels at a step; the schedules stay."""
    return at_sizes(program, kernels, sizes_at(program, step))


def at_sizes(
    program: TensorProgram, kernels: Kernels, sizes: Mapping[str, int]
) -> tuple[TensorProgram, list[tuple[BlockGraph, Schedule]]]:
    """The program and its kernels with its dynamic axes at other sizes; the schedules stay."""
    if not program.least:
        return program, list(kernels)
    varying = program.least.keys()
    small = replace(resize(program, sizes, varying), least={}, sized={})
    every = all_sizes(program, [block for block, _ in kernels], sizes)
    made = [(resize_block(b, {a: every.get(a, n) for a, n in b.sizes.items()}, varying), s) for b, s in kernels]
    return small, made


def all_sizes(program: TensorProgram, blocks: Sequence[BlockGraph], sizes: Mapping[str, int]) -> dict[str, int]:
    """Also of the axes that kernels have in place of one of the program's whose size varies (ir/parts.py)."""
    found = dict(sizes)
    for block in blocks:
        parts = parts_of(block, program)
        if parts is not None:
            own = sizes_in_parts(block, parts, sizes)
            found |= {axis: own[axis] for axis in (parts.split, parts.part)}
    return found


def words_of(program: TensorProgram, sizes: Mapping[str, int]) -> str:
    """ "m = 7, n = 64": of the axes that vary; "" without any."""
    return ", ".join(f"{axis} = {sizes[axis]}" for axis in program.least)


@dataclass
class SizeTable:
    """Schedules by size for the kernels of one program. What is found for a block graph is kept."""

    program: TensorProgram
    target: Target
    outputs: Sequence[str]
    _found: dict[tuple[int, int], list[Candidate]] = field(default_factory=dict[tuple[int, int], list[Candidate]])
    _plain: dict[int, float] = field(default_factory=dict[int, float])
    _kept: list[BlockGraph] = field(default_factory=list[BlockGraph])
    _parts: PartSchedules = field(init=False)

    def __post_init__(self) -> None:
        self._parts = PartSchedules(self.program.least, self.target)

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps for which schedules are looked for, the smallest first: powers of two, and the largest step."""
        least, largest = steps_of(self.program)
        powers = [1 << n for n in range(largest.bit_length()) if least <= 1 << n < largest]
        while len(powers) >= ROWS:
            powers = powers[::2]
        return (*powers, largest)

    def source(self, kernels: Kernels) -> KernelSource:
        """The kernels as one source, its launcher with the best schedule by estimate at each step. Raises Rejected."""
        whole = self.lowered(kernels)
        if not self.program.least:
            return whole
        parts: list[KernelSource] = []
        for number, part in enumerate(whole.kernels):
            varies = bool(part.launches) and part.by in self.program.leading
            rows = [next(self.each_choice(kernels, whole, number, step), None) for step in self.steps] if varies else []
            launches = merged([row[1] for row in rows if row is not None])
            parts.append(replace(part, launches=launches) if launches else part)
        return self.with_parts(whole, parts)

    def with_schedules(self, kernels: Kernels, rows: Sequence[Sequence[tuple[int, Schedule]]]) -> KernelSource:
        """The kernels as one source, its launcher with given schedules: for each kernel, up to which size each is for,
        the smallest first; none for a kernel without a dynamic axis. Raises Rejected where its text does not stay."""
        whole = self.lowered(kernels)
        parts = list(whole.kernels)
        for number, chosen in enumerate(rows):
            launches: list[Launch] = []
            for largest, schedule in chosen:
                changed = list(kernels)
                changed[number] = (kernels[number][0], schedule)
                other = self.lowered(changed).kernels[number]
                if other.jit != parts[number].jit:
                    raise Rejected(f"{other.name} has another text up to size {largest}.")
                launches.append(replace(other.launches[0], largest=largest))
            if launches:
                parts[number] = replace(parts[number], launches=merged(launches))
        return self.with_parts(whole, parts)

    def ranked(self, candidates: Sequence[tuple[Candidate, Verdict]]) -> list[tuple[Candidate, Verdict]]:
        """The candidates, best first over all sizes by estimate; in their order where no size varies."""
        if not self.program.least:
            return list(candidates)
        us = {id(candidate): self.estimate_us(candidate) for candidate, _ in candidates}
        return sorted(candidates, key=lambda pair: us[id(pair[0])])

    def lowered(self, kernels: Kernels) -> KernelSource:
        """With one schedule for all sizes. Raises Rejected."""
        return lower_kernels(kernels, target=self.target, outputs=self.outputs, program=self.program)

    def with_parts(self, whole: KernelSource, parts: Sequence[KernelSource]) -> KernelSource:
        """The source with other launches of its kernels."""
        launcher = launcher_text(whole.name, parts, self.outputs if len(parts) > 1 else ())
        if len(parts) == 1:
            return replace(parts[0], launcher=launcher)
        own = [replace(part, launcher=launcher_text(part.name, [part])) for part in parts]
        return replace(whole, parts=tuple(own), launches=own[0].launches, launcher=launcher)

    def each_choice(self, kernels: Kernels, whole: KernelSource, number: int, step: int) -> Iterator[Choice]:
        """Schedules of kernel `number` at a step under which its text stays, best first by estimate (microseconds). One
        by one: whether the text stays is found by writing it."""
        parts = parts_of(kernels[number][0], self.program)
        if parts is not None:
            sizes = sizes_at(self.program, step)
            alike = self._parts.alike(*kernels[number], kernels[number + 1 :], parts, sizes)
            made = [replace(one, schedule=in_order(one.schedule, kernels[number][1])) for one in alike[:TRIED]]
            yield from self._launches(kernels, whole, number, step, made)
            return
        each = self._choices(kernels, whole, number, step, step)
        first = next(each, None)
        if first is not None:
            yield first
            yield from each
        elif step == 1:  # an axis of one element has no tiles to choose from; those for two serve one as well
            yield from self._choices(kernels, whole, number, step, 2)

    def _choices(self, kernels: Kernels, whole: KernelSource, number: int, step: int, at: int) -> Iterator[Choice]:
        """The choices for a step, among the schedules that are good at step `at`."""
        return self._launches(kernels, whole, number, step, self._candidates(*kernels[number], at))

    def _launches(
        self, kernels: Kernels, whole: KernelSource, number: int, step: int, candidates: Sequence[Candidate]
    ) -> Iterator[Choice]:
        """Those of the candidates for a step under which the text of kernel `number` stays."""
        block = kernels[number][0]
        shape, limits = Shape(block), ScheduleLimits()
        for candidate in sorted(candidates, key=lambda one: one.estimate_us):
            # Tiles stay as they are when the size is smaller: what a device cannot hold, or gets wrong, stays so.
            if not fits(shape, candidate.schedule, self.target, limits):
                continue
            changed = list(kernels)
            changed[number] = (block, candidate.schedule)
            try:
                other = self.lowered(changed).kernels[number]
            except Rejected:
                continue
            if other.jit == whole.kernels[number].jit:
                by = whole.kernels[number].by
                launch = replace(other.launches[0], largest=sizes_at(self.program, step)[by])
                yield candidate.estimate_us, launch, candidate.schedule

    def estimate_us(self, candidate: Candidate) -> float:
        """A candidate's estimate over every other step, each with its best schedules: the geometric mean. Where it is
        slower than PyTorch, PyTorch's time counts, because the kernel would not run."""
        steps = self.steps[::-2]  # each four times the one before it: all candidates are looked at
        total = 0.0
        for step in steps:
            us = self._kernels_us(candidate.kernels, step)
            total += log2(max(min(us, self._library_us(step)), 1e-3))
        return float(2.0 ** (total / len(steps)))

    def _library_us(self, step: int) -> float:
        if step not in self._plain:
            self._plain[step] = estimate_library_us(at_step(self.program, [], step)[0], self.target)
        return self._plain[step]

    def _kernels_us(self, kernels: Sequence[Candidate], step: int) -> float:
        """The best estimates of kernels that run one after the other."""
        total, joined = 0.0, set[str]()
        for number, kernel in enumerate(kernels):
            parts = parts_of(kernel.block, self.program)
            if parts is not None and kernel.schedule.part:
                later = [(one.block, one.schedule) for one in kernels[number + 1 :]]
                looked = self._parts.looks(kernel.block, later, parts, sizes_at(self.program, step))
                joined.add(parts.split)
                total += looked[0][0] if looked else inf
            elif joined.isdisjoint(kernel.block.sizes):
                total += self._best_us(kernel, step)
        return total

    def _best_us(self, kernel: Candidate, step: int) -> float:
        """The best estimate of one kernel of a candidate, without those that follow it. A launch of a size without a
        schedule takes that for the next larger one."""
        if kernel.schedule.library:
            call = library_call(self._at(kernel.block, step))
            return estimate_call_us(call, self.target) if call is not None else inf
        larger = (self._candidates(kernel.block, kernel.schedule, one) for one in self.steps if one >= step)
        found = next((one for one in larger if one), None) or list[Candidate]()
        own = kernel.estimate_us
        if kernel.then is not None:
            own -= kernel.then.estimate_us
        return min((one.estimate_us for one in found), default=own)

    def _at(self, block: BlockGraph, step: int) -> BlockGraph:
        sizes = sizes_at(self.program, step)
        return resize_block(
            block, {axis: sizes.get(axis, n) for axis, n in block.sizes.items()}, self.program.least.keys()
        )

    def _candidates(self, block: BlockGraph, own: Schedule, step: int) -> list[Candidate]:
        """The best schedules of a block graph at a step, among those of the same kind as `own` (loops, swap)."""
        key = (id(block), step)
        if key not in self._found:
            self._found[key] = schedules(self._at(block, step), self.target)
            self._kept.append(block)
        fixed = {axis: size for axis, size in block.sizes.items() if axis not in self.program.least}
        kind = kind_of(own, fixed=fixed)
        alike = [one for one in self._found[key] if kind_of(one.schedule, fixed=fixed) == kind]
        return [replace(one, schedule=in_order(one.schedule, own)) for one in alike[:TRIED]]


def merged(rows: Sequence[Launch]) -> tuple[Launch, ...]:
    """Neighbouring rows that differ only in their size as one row."""
    merged: list[Launch] = []
    for row in rows:
        last = merged[-1] if merged else None
        if last is not None and replace(last, largest=row.largest, grid=row.grid) == row:
            merged[-1] = row
        else:
            merged.append(row)
    return tuple(merged)
