"""Verdicts on the topologies of one program, each given once however often it is asked about: the same function, and
no fewer digits."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.verification.alike import verdict_key
from mugraph.verification.conditioning import verified
from mugraph.verification.verdict import Verdict

On = Callable[[str], AbstractContextManager[object]]
_NONE = Schedule(())


class Verdicts:
    """on: says what the seconds within it count for. alike: what passed in other units, by all that its tests depend
    on. len(): of those that decide something; what was verified early does not count until it is asked about again."""

    def __init__(
        self, program: TensorProgram, on: On = nullcontext, alike: dict[Hashable, Verdict] | None = None
    ) -> None:
        self._program = program
        self._on = on
        self._alike = alike if alike is not None else {}
        self._known: dict[tuple[int, ...], Verdict] = {}
        self._early: dict[tuple[int, ...], Verdict] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, candidate: Candidate) -> bool:
        return candidate.topology in self._known

    def of(self, candidate: Candidate) -> Verdict:
        key = candidate.topology
        if key not in self._known:
            self._known[key] = self._early.get(key) or self._verified(*(kernel.block for kernel in candidate.kernels))
        return self._known[key]

    def of_block(self, block: BlockGraph) -> Verdict:
        """Of a topology of one kernel that has no schedule yet."""
        return self.of(Candidate(block, _NONE))

    def early(self, candidate: Candidate) -> Verdict:
        """While the search runs, to tell of it; it decides nothing."""
        key = candidate.topology
        if key not in self._early:
            self._early[key] = self._known.get(key) or self._verified(*(kernel.block for kernel in candidate.kernels))
        return self._early[key]

    @property
    def first_wrong(self) -> str | None:
        """Why the first topology that is wrong is so."""
        return next((verdict.reason for verdict in self._known.values() if not verdict.passed), None)

    def _verified(self, *blocks: BlockGraph) -> Verdict:
        with self._on("verification"):
            key = verdict_key(self._program, blocks)
            known = self._alike.get(key) if key is not None else None
            found = known or verified(self._program, blocks)
            if key is not None and found.passed:  # why one is wrong is said with its own names
                self._alike[key] = found
            return found
