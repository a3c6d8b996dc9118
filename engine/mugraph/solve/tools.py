"""What a run shares between its search units: the target, and the processes that search, test and measure."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass, field

from mugraph.executors.executor import Executor
from mugraph.executors.processes import Processes
from mugraph.protocol.settings import CompareWith
from mugraph.search.alike import Alike
from mugraph.solve.filetime import FileTime
from mugraph.stopwatch import Stopwatch
from mugraph.targets import Target
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.peers import Peers
from mugraph.tune.process import Unavailable
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verdict import Lowering, Verdict


@dataclass
class Tools:
    """executor: None searches in this process.
    tester:   runs kernels on their device, or in Triton's interpreter
    compiled: the device is here, so kernels run compiled and at full size
    measurer, pool: None where nothing is measured
    solved:   the search units of this run, as the store keeps them, by their keys
    peers:    what a region is compared with is compiled there; None where nothing is measured
    compare_with: what a kernel has to be faster than
    timed_peers: what is timed beside it; None: as compare_with has it
    spent:    where the seconds go
    file_time: how long a file may be searched for
    lowerings: whether programs of this run are what recorded calls compute, by the marks of their units
    digits:   whether calls of this run keep float32's digits on the device, where they may take TF32
    alike, verdicts: topologies and verdicts of this run's units, for those that differ from them in sizes alone
    units:    processes that solve search units side by side; None where they are solved one after the other
    run_number: of the runs that are served one after the other
    """

    target: Target
    tester: FloatTester
    compiled: bool = False
    measurer: Measurer | None = None
    pool: CompilePool | None = None
    executor: Executor | None = None
    solved: dict[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    peers: Peers | None = None
    compare_with: CompareWith = "both"
    timed_peers: tuple[str, ...] | None = None
    spent: Stopwatch = field(default_factory=Stopwatch)
    file_time: FileTime = field(default_factory=FileTime)
    lowerings: dict[str, Lowering] = field(default_factory=dict[str, Lowering])
    digits: dict[str, bool] = field(default_factory=dict[str, bool])
    alike: Alike = field(default_factory=Alike)
    verdicts: dict[Hashable, Verdict] = field(default_factory=dict[Hashable, Verdict])
    units: Processes | None = None
    run_number: int = 0

    @contextlib.contextmanager
    def on(self, what: str) -> Generator[None]:
        """Seconds inside count for `what`."""
        with self.spent.on(what):
            yield

    def lap(self) -> Mapping[str, float]:
        """The seconds since the last lap, by what they went to."""
        return self.spent.lap()

    def begin_run(self) -> None:
        """Nothing that was found in the runs before is known in this one; processes go on."""
        self.solved, self.lowerings, self.digits, self.alike, self.verdicts = {}, {}, {}, Alike(), {}
        self.file_time = FileTime()
        if self.pool is not None:
            self.pool.forget()
        self.spent.here()
        self.spent.lap()

    @property
    def pids(self) -> list[int]:
        """Of the processes that run now, but for those of `executor`, which may be anywhere."""
        measurers = [self.measurer, self.peers.measurer if self.peers is not None else None]
        found = [self.tester.pid, *(one.pid for one in measurers if one is not None)]
        several = [one.pids for one in (self.pool, self.units) if one is not None]
        return [pid for pid in (*found, *(pid for pids in several for pid in pids)) if pid is not None]

    def release(self) -> None:
        """What lies on the device for a file that is done with. What PyTorch still compiles for it is given up."""
        self.tester.release()
        if self.measurer is not None:
            if self.measurer.ran_users_code:  # a region was compared there: it knows the file as it was
                self.measurer.end()
            self.measurer.release()
        if self.peers is not None:
            self.peers.release()

    def begin(self) -> None:
        """Start the processes that will be needed, so that they import while a search runs."""
        self.tester.begin()
        if self.executor is not None:
            self.executor.begin()
        with contextlib.suppress(Unavailable):  # the first that needs it is told
            if self.measurer is not None:
                self.measurer.begin()
            if self.pool is not None:
                self.pool.begin()

    def begin_early(self) -> None:
        """As `begin`, before it is known whether there will be a search: where something will be measured, processes
        take long to start, and there are processors for them."""
        if self.measurer is None:
            return
        if self.peers is not None:  # not while its thread may start it; first, as it takes longest to be ready
            with contextlib.suppress(Unavailable):
                self.peers.measurer.begin()
        self.begin()
