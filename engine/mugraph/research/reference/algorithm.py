"""Algorithm 1 of "Mirage: A Multi-Level Superoptimizer for Tensor Programs" (§4), for one graph-defined kernel.

For all grid and for-loop dimensions, operators are appended to a block graph in increasing rank: the list of input
indices, then the operator type. The paper leaves open how lists are compared. Here it is by the highest index first,
which loses nothing: of the operators whose inputs are there, always append the one of least rank; what becomes
available by it has its index among the inputs, the highest so far, and so a higher rank than all before. Every graph
has just this one order of increasing rank.

What is left to the end, as in the paper, is the proof of equality, over the finite fields of §5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import CONSTANTS, searchable
from mugraph.research.reference.finished import Finished, Node
from mugraph.research.reference.operators import Operators, OperatorType, Shared
from mugraph.research.reference.sizes import Sizes, every, loop_sets
from mugraph.search.algebra.abstract import Algebra
from mugraph.search.topologies.frame import Frame
from mugraph.targets import TARGETS

BYTES = 2
"""Of one element in shared memory."""
_POLL = 512
"""Prefixes between two questions whether to stop."""

Rank = tuple[tuple[int, ...], int]


@dataclass(slots=True)
class Counts:
    """sizes, sizes_done: choices of grid and for-loop dimensions; prefixes: block graphs formed, finished or not;
    rejected: operators, by what ConstructOp had against them, and finished graphs, by what was wrong with them."""

    sizes: int = 0
    sizes_done: int = 0
    prefixes: int = 0
    rejected: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class _Prefix:
    tensors: list[Shared]
    nodes: list[Node]
    last: Rank
    unused: int  # tensors nothing consumes yet, as bits
    bytes: int


class LiteralSearch:
    """All block graphs of at most `max_ops` operators equal to the program, once for each choice of sizes."""

    def __init__(
        self,
        program: TensorProgram,
        max_ops: int,
        max_loops: int = 2,
        memory: int = TARGETS["h100"].shared,
        choices: Callable[[TensorProgram, tuple[str, ...]], Iterable[Sizes]] = every,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """memory: bytes that all tensors of a block graph may take (line 34); choices: grid and for-loop dimensions for
        one set of loops. Raises NotSearchable."""
        self._program, self._max_ops, self._memory = program, max_ops, memory
        self._cancelled = cancelled
        self._choices = [(loops, list(choices(program, loops))) for loops in loop_sets(program, max_loops)]
        self.stopped = False
        self.counts = Counts(sum(len(chosen) for _, chosen in self._choices))

    def run(self) -> Iterator[tuple[Sizes, BlockGraph]]:
        """Ends when the space does, or the caller's `cancelled` says so."""
        for loops, choices in self._choices:
            frame = Frame(self._program, loops, Algebra(searchable(self._program.ops)))
            for sizes in choices:
                kernel = _Kernel(frame, sizes, self)
                for graph in kernel.graphs():
                    yield sizes, graph
                if self.stopped:
                    return
                self.counts.sizes_done += 1

    @property
    def max_ops(self) -> int:
        return self._max_ops

    @property
    def memory(self) -> int:
        return self._memory

    def formed(self) -> bool:
        """One prefix more; may the search go on?"""
        self.counts.prefixes += 1
        if not self.counts.prefixes % _POLL and self._cancelled():
            self.stopped = True
        return not self.stopped


class _Kernel:
    """GenerateNextBlockOperator (line 21) with the sizes chosen."""

    def __init__(self, frame: Frame, sizes: Sizes, search: LiteralSearch) -> None:
        self._frame, self._sizes, self._search = frame, sizes, search
        self._operators = Operators(frame)
        self._goal = frame.values[next(iter(frame.program.outputs))]
        # Input set I, line 11: every input of the program is in its abstract expression, which never loses a part,
        # so a kernel that lacks one cannot compute the output.
        leaves = {value.nf: op for op in frame.program.ops if (value := frame.values[op.name]).is_leaf}
        self._leaves = [op for nf, op in leaves.items() if frame.algebra.sub(nf, self._goal.nf)]
        # Constants of forms (ops/functions/through_exp.py) are brought by the functions as well.
        brought = {number for fn in frame.algebra.by_form for number in CONSTANTS[fn]}
        self._optional = sum(
            1 << i for i, op in enumerate(self._leaves) if op.kind is Kind.CONST and op.value in brought
        )
        self._finished = Finished(frame, self._leaves, self._goal)

    def graphs(self) -> Iterator[BlockGraph]:
        values = [self._frame.values[op.name] for op in self._leaves]
        tensors = [Shared(value.mask, 0, value.nf) for value in values]
        size = sum(self._bytes(tensor.mask) for op, tensor in zip(self._leaves, tensors, strict=True)
                   if op.kind is Kind.LOAD)  # fmt: skip
        if size > self._search.memory:
            self._search.counts.rejected["memory"] += 1
            return
        yield from self._extend(_Prefix(tensors, [], ((), 0), (1 << len(tensors)) - 1, size))

    def _extend(self, prefix: _Prefix) -> Iterator[BlockGraph]:
        if not self._search.formed():
            return
        last = len(prefix.tensors) - 1
        if prefix.nodes and prefix.unused & ~self._optional == 1 << last and prefix.tensors[last].nf == self._goal.nf:
            yield from self._finish(prefix)
        if len(prefix.nodes) == self._search.max_ops:
            return
        for inputs, types in self._inputs(prefix):
            for position, kind in enumerate(types):
                rank = (inputs, position)
                if rank <= prefix.last:
                    continue
                longer = self._construct(prefix, rank, kind)
                if longer is not None:
                    yield from self._extend(longer)
                if self._search.stopped:
                    return

    def _inputs(self, prefix: _Prefix) -> Iterator[tuple[tuple[int, ...], list[OperatorType]]]:
        """Input sets by rank, highest index first, with the types that take as many; none below the last rank's."""
        for high in range(max(prefix.last[0], default=0), len(prefix.tensors)):
            yield (high,), self._operators.unary
            for low in range(high + 1):
                yield (high, low), self._operators.binary

    def _construct(self, prefix: _Prefix, rank: Rank, kind: OperatorType) -> _Prefix | None:
        """ConstructOp, line 30: expression, shape, memory."""
        inputs, _ = rank
        rejected = self._search.counts.rejected
        if kind.reverse and inputs[0] == inputs[1]:  # x / x is one operator
            return None
        operands = tuple(prefix.tensors[i] for i in inputs)
        nf = self._operators.expression(kind, operands)
        if not self._frame.algebra.sub(nf, self._goal.nf):
            rejected["expression"] += 1
            return None
        shape = self._operators.shape(kind, operands)
        if shape is None:
            rejected["shape"] += 1
            return None
        tensor = Shared(*shape, nf)
        size = prefix.bytes + self._bytes(tensor.mask)
        if size > self._search.memory:
            rejected["memory"] += 1
            return None
        unused = prefix.unused | 1 << len(prefix.tensors)
        for i in inputs:
            unused &= ~(1 << i)
        ordered = inputs[::-1] if kind.reverse else inputs
        return _Prefix([*prefix.tensors, tensor], [*prefix.nodes, Node(kind, ordered)], rank, unused, size)

    def _finish(self, prefix: _Prefix) -> Iterator[BlockGraph]:
        found = self._finished.block(prefix.nodes, prefix.tensors)
        if isinstance(found, str):
            self._search.counts.rejected[found] += 1
        else:
            yield found

    def _bytes(self, mask: int) -> int:
        return BYTES * self._sizes.elements(self._frame.axes_of(mask), self._frame.program.sizes)
