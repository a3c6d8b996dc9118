"""What a person can choose about a run of the pipeline."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from mugraph.protocol.setting_kinds import chosen
from mugraph.protocol.settings import EngineSettings, TunerName

LEAST_S = 1.0
"""Seconds that a search gets at least, once it is begun."""


@dataclass(frozen=True)
class Bounds:
    """Of the search of one search unit.

    seconds:     it may take
    max_kernels: of its kernel graph
    max_ops:     of a block graph: up to so many operators, all are looked for, however the program is written
    exact:       only kernels that are known to have the same bits as PyTorch
    tuner:       says which kernels are measured
    trials:      of them, at most
    without:     optimisations of verified μGraphs that are left out
    """

    seconds: float = EngineSettings.budget_s
    max_kernels: int = EngineSettings.max_kernels
    max_ops: int = EngineSettings.max_ops
    exact: bool = EngineSettings.exact
    tuner: TunerName = EngineSettings.tuner
    trials: int = EngineSettings.trials
    without: frozenset[str] = frozenset()

    def within(self, left_s: float) -> Bounds:
        """Of a search that begins when so many seconds of its file's are left."""
        return self if left_s >= self.seconds else replace(self, seconds=max(left_s, min(LEAST_S, self.seconds)))

    def __str__(self) -> str:
        exact = ", the same bits as PyTorch" if self.exact else ""
        tuned = ""
        if (self.tuner, self.trials) != (EngineSettings.tuner, EngineSettings.trials):
            tuned = f", {self.trials} trials of {self.tuner}"
        without = f", without {' and '.join(sorted(self.without))}" if self.without else ""
        return f"{self.seconds:g} s, {self.max_kernels} kernels, {self.max_ops} operators{exact}{tuned}{without}"


@dataclass(frozen=True)
class Options(EngineSettings):
    """The settings of an engine, and more.

    executor: where the search is worked on, by its name
    peers:    what is timed beside the generated code; None: as compare_with has it
    """

    executor: str = "inline"
    peers: tuple[str, ...] | None = None

    @staticmethod
    def of(settings: EngineSettings, executor: str = "inline") -> Options:
        return Options(**asdict(settings), executor=executor)

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.budget_s, self.max_kernels, self.max_ops, self.exact, self.tuner, self.trials, self.left_out)

    @property
    def left_out(self) -> frozenset[str]:
        """Optimisations of verified μGraphs that are left out."""
        return chosen(self.without)
