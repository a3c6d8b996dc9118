"""One form of a program whose values are cut: its parts, what is known of each, and the kernel graphs they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from mugraph.ir.block import Candidate
from mugraph.ir.library import fast_call
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.renaming import key_of
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.chain import Apart, chained
from mugraph.search.kernel_graphs.expected import Remainders
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.partitions import Options, Part, Partition, Partitions
from mugraph.search.kernel_graphs.parts import Solved, by_estimate, is_what_the_code_runs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram, worth_storing
from mugraph.search.kernel_graphs.waists import waists
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.search.topologies.limits import never
from mugraph.search.topologies.softmax import is_shift_invariant
from mugraph.targets import Target

_SCHEDULES = 6
"""Schedules of each kernel of a kernel graph, the others' being the best."""
_DOUBTED = 8.0
"""How many times its time a part counts with that has the reductions of one for which no kernel was found."""


class Form:
    """The program, or an equal one with other values, and what is known of its parts.

    expected:   how many times what its traffic takes a part is expected to take that has not been searched
    candidates: of the whole program, None where it has not been searched; remainders: what is left of them
    """

    def __init__(
        self,
        program: TensorProgram,
        target: Target,
        limits: GraphLimits,
        solver: Solver,
        expected: float,
        candidates: Sequence[Candidate] | None,
        remainders: Remainders,
    ) -> None:
        self.program, self._target, self._limits, self._solver = program, target, limits, solver
        self._factor, self._remainders = expected, remainders
        self._stored = in_memory(program)
        # Without products a kernel may take exponentials again, relative to the maxima that another one has stored.
        self._is_softmax = is_shift_invariant(program.ops) and (
            any("exp" in op.kind.primitives for op in program.ops) and any(op.kind.contracts for op in program.ops)
        )
        self._worth_storing = worth_storing(program, self._stored)
        self._partitions = Partitions(program, self._worth_storing, limits.max_reads)
        self.is_cut = False  # there may be more partitions than are kept
        self._programs: dict[Part, TensorProgram] = {}
        self._expected: dict[Part, float] = {}
        self._barren: list[tuple[tuple[str, ...], frozenset[str]]] = []
        self.solved: dict[Part, Solved] = {}
        if candidates is not None:
            self._know(self._partitions.whole, Solved(tuple(candidates)))

    @property
    def is_late(self) -> bool:
        """The last call of `best` was ended."""
        return self._partitions.is_late

    def best(self, within: float, over: Callable[[], bool] = never) -> list[Partition]:
        """over: the partitions met by then are all"""
        limits = self._limits
        found = self._partitions.best(self._options, limits.max_kernels, limits.partitions, within, over)
        self.is_cut = len(found) == limits.partitions
        return found

    def early(self) -> Iterator[Partition]:
        """What is looked at before all others, which are compared with it. Of a program with several outputs: each of
        them computed for itself, where one kernel can. Of one with products: a kernel that ends where little is left of
        them."""
        for parts in (self._partitions.apart, *waists(self.program, self._worth_storing)):
            partition = self._solved(parts)
            if partition is not None:
                yield partition

    def _solved(self, parts: Sequence[Part]) -> Partition | None:
        """The best partition into these parts; None where there is none."""
        if not 1 < len(parts) <= self._limits.max_kernels:
            return None
        self.expect(parts)
        for part in parts:
            self.solve(part)
        options = [min(self._options(part), key=lambda option: option[1], default=None) for part in parts]
        chosen = [option for option in options if option is not None]
        if len(chosen) < len(parts) or sum(count for count, _ in chosen) > self._limits.max_kernels:
            return None
        counts = [(part, count) for part, (count, _) in zip(parts, chosen, strict=True)]
        return Partition(sum(us for _, us in chosen), tuple(counts))

    def known_us(self, partition: Partition) -> float | None:
        """Of a partition whose parts are all solved, and with so many kernels each."""
        if not all(part in self.solved for part, _ in partition.parts):
            return None
        found = [dict(self._options(part)).get(count) for part, count in partition.parts]
        us = [one for one in found if one is not None]
        return sum(us) if len(us) == len(found) else None

    def is_known(self, part: Part) -> bool:
        return self._solver.knows(self._program(part))

    def expect(self, parts: Iterable[Part]) -> None:
        self._solver.expect(self._program(part) for part in parts if part not in self.solved)

    def solve(self, part: Part) -> None:
        self._know(part, self._solver.solve(self._program(part)))

    def _know(self, part: Part, solved: Solved) -> None:
        self.solved[part] = solved
        if not solved.candidates:
            self._barren.append((part.values, self._reductions(part)))

    def key_of(self, partition: Partition) -> Hashable:
        """Equal for partitions that differ only in names, or in the order of kernels that do not need one another."""
        return frozenset(Counter((key_of(self._program(part))[0], count) for part, count in partition.parts).items())

    def candidates(self, partition: Partition) -> tuple[Candidate, ...]:
        """Best first: the best of each part, and for each part a few other schedules."""
        if sum(count for _, count in partition.parts) < 2 or len(partition.parts) < 2:
            return ()
        choices = [_choice(self.solved[part].of(count)) for part, count in partition.parts]
        names = {tensor.name for tensor in (*self.program.tensors, *self._stored.values())}
        apart = Apart(names, set(self.program.sizes))
        renamed = [apart.part(choice) for choice in choices]
        best = [choice[0] for choice in renamed]
        chains = [best]
        for at, choice in enumerate(renamed):
            chains += [[*best[:at], other, *best[at + 1 :]] for other in choice[1:]]
        kept = [chain for chain in chains if not is_what_the_code_runs(chain)]
        return by_estimate(chained(chain) for chain in kept)

    def _options(self, part: Part) -> Options:
        if part in self.solved:
            return self.solved[part].options
        if part not in self._expected:
            program = self._program(part)
            safe = not self._is_softmax or is_shift_invariant(program.ops)
            least = self._solver.least_us(program)
            call = fast_call(as_block(program))
            called = estimate_call_us(call, self._target) if call is not None else float("inf")
            expected = min(max(least * self._factor, self._remainder_us(part)), called)
            self._expected[part] = expected if safe else float("inf")
        return [(1, self._expected[part] * (_DOUBTED if self._is_doubted(part) else 1.0))]

    def _is_doubted(self, part: Part) -> bool:
        """Has it all the reductions of a part with the same results for which no kernel was found? What keeps a kernel
        from fitting is what it reduces, not an element-wise value more or less that it loads."""
        return any(
            values == part.values and reductions <= self._reductions(part) for values, reductions in self._barren
        )

    def _reductions(self, part: Part) -> frozenset[str]:
        return frozenset(op.name for op in self._program(part).ops if op.kind.reduces)

    def _remainder_us(self, part: Part) -> float:
        """Of a part that computes the program's output, where it can be told from the kernels for all of it."""
        is_output = part.values == tuple(self.program.outputs)
        return (self._remainders.us(part.leaves, self._stored) if is_output else None) or 0.0

    def _program(self, part: Part) -> TensorProgram:
        if part not in self._programs:
            self._programs[part] = subprogram(self.program, part.values, part.leaves, self._stored)
        return self._programs[part]


def _choice(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best few candidates, and the library's kernel if there is one: the model errs."""
    return [*candidates[:_SCHEDULES], *(one for one in candidates[_SCHEDULES:] if one.schedule.library)]
