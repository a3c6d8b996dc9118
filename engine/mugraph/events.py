"""What the pipeline tells while it works and when it is done: frozen values, for reports, JSON and editors alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mugraph.ir.block import BlockGraph
from mugraph.ir.kernel import KernelSource
from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.ir.region import Region, SearchUnit, Status, Trace
from mugraph.ir.shares import Share
from mugraph.plans.plan import RegionPlan
from mugraph.protocol.settings import CompareWith
from mugraph.tune.device import Device
from mugraph.verification.verdict import Lowering, Verdict


@dataclass(frozen=True)
class SearchReport:
    """What a search did. Seconds are wall-clock, imports excluded.

    first_verified_s: until the first topology passed verification; None if none did
    total_s:          search, verification of the best and their schedules together
    complete:         every topology of up to `complete_to` block operators was found, and that is as far as searches go
    complete_to, ended_by: as search.topologies.limits.Stats has them
    pruned:           reason -> combinations discarded
    out_of_time:      with more seconds there may be more, of one kernel or of several
    """

    first_verified_s: float | None = None
    total_s: float = 0.0
    topologies: int = 0
    candidates: int = 0
    complete: bool = True
    complete_to: int = 0
    ended_by: str = "space"
    pruned: Mapping[str, int] = field(default_factory=dict[str, int])
    out_of_time: bool = False

    def __add__(self, other: SearchReport) -> SearchReport:
        """Of two searches, one after the other."""
        firsts = [s.first_verified_s for s in (self, other) if s.first_verified_s is not None]
        pruned = {k: self.pruned.get(k, 0) + other.pruned.get(k, 0) for k in (*self.pruned, *other.pruned)}
        return SearchReport(
            min(firsts, default=None),
            self.total_s + other.total_s,
            self.topologies + other.topologies,
            self.candidates + other.candidates,
            self.complete and other.complete,
            min(self.complete_to, other.complete_to),
            self.ended_by if not self.complete else other.ended_by,
            pruned,
            self.out_of_time or other.out_of_time,
        )


LEVEL = 0.99
"""Of a time by estimate: a difference that it cannot tell from none."""


@dataclass(frozen=True)
class Solution:
    """The kernel graph chosen for one search unit.

    kernel:       the first one: a generated kernel with its thread graphs, or a pre-defined one
    then:         those that run after it: they finish what it leaves, or compute further values
    source:       their Triton text, named after the first
    verdict:      with the float test of this very kernel where one ran
    estimate_us, library_us: by the cost model, of the kernel and of what PyTorch would run for the unit
    measured_us:  of the kernel alone, on the device; None without one
    plain_us:     of the unit as plain PyTorch calls, in the same way; None where the region has nothing else, and its
                  own time will tell
    pays_smaller: of a size in a range, where it does not pay at the largest: it does at a smaller one
    tested:       its tiles, text and results were; where not, it does not pay, whatever it is compared with
    """

    kernel: GraphKernel | LibraryKernel
    source: KernelSource
    verdict: Verdict
    estimate_us: float
    library_us: float
    measured_us: float | None = None
    plain_us: float | None = None
    then: tuple[GraphKernel | LibraryKernel, ...] = ()
    pays_smaller: bool = False
    tested: bool = True

    @property
    def kernels(self) -> tuple[GraphKernel | LibraryKernel, ...]:
        """In the order they run."""
        return (self.kernel, *self.then)

    @property
    def pays(self) -> bool:
        """Worth a place in the region's plan, as far as can be told from this search unit alone."""
        if not self.tested:
            return False
        if self.pays_smaller:
            return True
        if self.measured_us is None:
            return self.is_expected_to_pay
        return self.plain_us is None or self.measured_us < self.plain_us

    @property
    def is_expected_to_pay(self) -> bool:
        """By estimate."""
        return self.estimate_us * LEVEL < self.library_us


@dataclass(frozen=True)
class Considered:
    """A candidate of a search unit whose topology passed verification, in words.

    number:      in the order they were met, from 0; whoever hears of a number again hears more of the same candidate
    seconds:     since the unit's search began
    words:       grid, loops and launch of each of its kernels
    block_ops:   operators of all of its kernels
    estimate_us: by the cost model
    measured_us: on the device, of the kernel alone; None where it was not timed
    chosen:      it is the one that the search unit's kernel was made of
    """

    number: int
    seconds: float
    words: str
    block_ops: int
    estimate_us: float
    measured_us: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class UnitResult:
    """reason: why there is no solution, or why it is not used. rejected: candidate's reason -> how many.

    searched:   False where the file's time was over before it could be
    late:       whether it was over before the kernel was tested, which is shown and not offered
    kernel:     what its kernel is called, or would be
    considered: candidates on the way, in the order they were met: each one that was expected to be the fastest so far,
                the best of each further topology, and all that were timed
    lowering:   whether the unit's program is what its calls compute; None where that was not looked at
    """

    unit: SearchUnit
    solution: Solution | None
    search: SearchReport
    reason: str | None = None
    rejected: Mapping[str, int] = field(default_factory=dict[str, int])
    from_store: bool = False
    kernel: str = ""
    considered: tuple[Considered, ...] = ()
    searched: bool = True
    late: bool = False
    lowering: Lowering | None = None


@dataclass(frozen=True)
class Clock:
    """Microseconds of a region before and after, on one clock.

    baseline_us:  of the code as it runs
    speedup:      over it: below 1 where it is slower, exactly 1.0 within the noise of what was measured
    peers_us:     what PyTorch offers for it, by name, the code as it runs among them
    best_peer:    the fastest of them
    best_speedup: over that one
    """

    baseline_us: float | None = None
    optimized_us: float | None = None
    speedup: float | None = None
    peers_us: Mapping[str, float] = field(default_factory=dict[str, float])
    best_peer: str | None = None
    best_speedup: float | None = None


@dataclass(frozen=True)
class Called(Clock):
    """As a program calls it: wall time of a call in eager mode, with guards and launch. method: how it was taken."""

    method: str = ""


@dataclass(frozen=True)
class Figures(Clock):
    """On the device alone, and as_called, where that was measured.

    why_not: why it is not offered, whatever else it gains
    """

    as_called: Called | None = None
    why_not: str | None = None

    @property
    def gains(self) -> bool:
        """Faster than the code as it runs on one of the clocks, and nothing stands against it."""
        called = self.as_called.speedup if self.as_called is not None else None
        return self.why_not is None and max(self.speedup or 0, called or 0) > 1


@dataclass(frozen=True)
class SizeTiming(Figures):
    """A region's times at one size of a range; the figures come from where those of the whole Timing do."""

    size: int = 0


@dataclass(frozen=True)
class Timing(Figures):
    """Microseconds of the region before and after. source says where they come from: estimates are of what PyTorch
    would run, as it is written and fused by torch.compile.

    method: how it was measured; with an estimate, for which device the model is
    sizes:  of a region with a size in a range: at some of them, the smallest first
    at:     then: which of them the figures above are of: the largest at which something is gained, if any is
    compare_with: the setting by which it was judged
    """

    source: Literal["measured", "estimated"] = "estimated"
    device: str = ""
    method: str = ""
    sizes: tuple[SizeTiming, ...] = ()
    at: int | None = None
    compare_with: CompareWith = "both"


@dataclass(frozen=True)
class RegionResult:
    """plan: what would be written; None where nothing was found. sources: kernel name -> its text. spent_s: seconds by
    what was done in them."""

    region: Region
    status: Status
    reason: str | None = None
    plan: RegionPlan | None = None
    sources: Mapping[str, KernelSource] = field(default_factory=dict[str, KernelSource])
    units: tuple[UnitResult, ...] = ()
    timing: Timing = field(default_factory=Timing)
    search: SearchReport = field(default_factory=SearchReport)
    spent_s: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def unsearched(self) -> str | None:
        """How much of it was left when the file's time was over, and what gives it more; None where nothing was."""
        late = Counter(unit.reason for unit in self.units if not unit.searched or unit.late)
        said = [f"{count} of its {len(self.units)} search units were {why}" for why, count in late.items()]
        return "; ".join(said) or None


@dataclass(frozen=True)
class FileResult:
    """device: with the target that was asked for. preview: text of the kernel module, were it written now; None where
    nothing improved. shares: of a recorded run, by the region's position."""

    path: str
    device: Device
    regions: tuple[RegionResult, ...]
    errors: tuple[str, ...] = ()
    preview: str | None = None
    shares: Mapping[int, Share] = field(default_factory=dict[int, Share])


# --- events, in the order they can occur ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Traced:
    trace: Trace
    seconds: float


@dataclass(frozen=True)
class Searching:
    """A search unit's search begins, or has come this far. unit, units: which of how many, from 0."""

    region: int
    unit: int
    units: int
    function: str
    topologies: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class FirstHit:
    """The first topology that passed verification."""

    region: int
    unit: int
    block: BlockGraph
    seconds: float


@dataclass(frozen=True)
class Better:
    """A candidate that is verified and expected to be faster than the ones before. kernel: what its unit makes."""

    region: int
    unit: int
    kernel: str
    candidate: Considered


@dataclass(frozen=True)
class Another:
    """A candidate that is verified and no faster, or one told of before that has a time now."""

    region: int
    unit: int
    kernel: str
    candidate: Considered


@dataclass(frozen=True)
class Working:
    """A long step that is no search: what, and how far."""

    region: int
    what: str
    done: int = 0
    of: int = 0


@dataclass(frozen=True)
class RegionDone:
    region: int
    result: RegionResult


@dataclass(frozen=True)
class Done:
    result: FileResult


Event = Traced | Searching | FirstHit | Better | Another | Working | RegionDone | Done
