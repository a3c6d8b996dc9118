"""One traced file, inside the process that may run the user's code: load, build, run, partition."""

from __future__ import annotations

import importlib
import logging
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mugraph.ir.ranges import Take
from mugraph.ir.region import Region, Status
from mugraph.nested import Reached, until_called_for
from mugraph.trace.regions.elsewhere import regions_elsewhere
from mugraph.trace.regions.no_region import lines_without, no_region
from mugraph.trace.regions.partition import MOST_CALLS, Partition
from mugraph.trace.regions.scope import Scope
from mugraph.trace.request import Request
from mugraph.trace.run.around import as_recorded, autocast_words
from mugraph.trace.run.autocast import remember_what_is_wanted
from mugraph.trace.run.build import Builder, CannotBuild
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.data_sizes import DataSizes, SizesOfData
from mugraph.trace.run.devices import OneDevice
from mugraph.trace.run.entries import Entry
from mugraph.trace.run.gpu_answers import ANSWERS, answering
from mugraph.trace.run.grad_mode import GradMode
from mugraph.trace.run.left_behind import LeftBehind
from mugraph.trace.run.loader import Workspace
from mugraph.trace.run.places import Places
from mugraph.trace.run.rebuild import NotKept
from mugraph.trace.run.recorder import Recorder
from mugraph.trace.run.tape import STATEMENT, Happening, Record
from mugraph.trace.run.tape_writer import TraceTooLong
from mugraph.trace.run.varying_inputs import Inputs
from mugraph.trace.run.varying_runs import Runs
from mugraph.trace.run.without_numbers import WithoutNumbers
from mugraph.trace.syntax.package import package_of
from mugraph.trace.syntax.size_ranges import largest_of
from mugraph.trace.syntax.source import Source

_log = logging.getLogger("mugraph.trace")


def sentence(error: BaseException, source: Source) -> str:
    """One line: what was raised, and where in the file."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source.path]
    return f"{said} (line {lines[-1]})" if lines else said


_TO_NUMPY = "not supported for tensor subclasses"
"""What `x.numpy()` says where there are no numbers."""


def is_about_fake_tensors(error: BaseException) -> bool:
    """Whether the run failed because tensors had no numbers, so that one with real tensors may work."""
    chain: BaseException | None = error
    while chain is not None:
        said = str(chain).lower()
        if type(chain).__module__.startswith("torch._subclasses") or "fake" in said or _TO_NUMPY in said:
            return True
        chain = chain.__cause__ or chain.__context__
    return False


def _names_of(entry: Entry) -> set[str]:
    """That sizes of data are not called, as they are said in its comment."""
    return {*entry.arguments, *(one.name for one in entry.sizes)}


MAX_REAL_ELEMENTS = 1 << 26  # what a second run on real tensors may take


@dataclass
class Session:
    """source: of the file whose functions are run; regions are looked for in the workspace's `traced`.
    elsewhere: the user's other files that have regions outside of those that were found -> which
    sizes_of_data: by function. pick: which of each is taken
    seed: of random numbers. with_numbers: functions that could only be run with them. on_cpu: that
    do not run where they are told that their tensors are on a GPU
    without_loops: functions of which no region holds a loop (regions/gathering.py)"""

    request: Request
    source: Source
    recorder: Recorder
    workspace: Workspace
    namespace: dict[str, object] = field(default_factory=dict[str, object])
    errors: list[str] = field(default_factory=list[str])
    failed: list[Region] = field(default_factory=list[Region])
    without_region: list[str] = field(default_factory=list[str])
    barriers: Counter[str] = field(default_factory=Counter[str])
    operators: int = 0
    ran: set[str] = field(default_factory=set[str])
    elsewhere: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    sizes_of_data: dict[str, SizesOfData] = field(default_factory=dict[str, SizesOfData])
    pick: Take = largest_of
    seed: int = 0
    without_loops: set[str] = field(default_factory=set[str])
    with_numbers: set[str] = field(default_factory=set[str])
    on_cpu: set[str] = field(default_factory=set[str])
    constants: Constants = field(default_factory=lambda: Constants(real=True))
    incomplete: str = ""  # why the file was not imported to its end
    left_behind: LeftBehind = field(default_factory=lambda: LeftBehind({}))

    def load(self) -> bool:
        remember_what_is_wanted()
        path = Path(self.source.path)
        top, name, package = package_of(path, self.request.imported_as)
        if str(top) not in sys.path:
            sys.path.insert(0, str(top))
        for picture in self.request.pictures.values():
            sys.path += [place for place in picture.around.path if place not in sys.path and Path(place).is_dir()]
            if picture.of_session:
                name, package = "__main__", None
        sys.argv = [self.source.path]
        try:
            if package is not None and path.stem != "__init__":
                with GradMode().without_inference():
                    importlib.import_module(package)
            wanted = {*self.request.pictures, *(self.request.recorded or {}), *filter(None, [self.request.qualname])}
            with until_called_for(wanted), GradMode().without_inference():
                self.namespace = self.workspace.run(self.source, name, package)
        except Reached:
            self.namespace = vars(sys.modules[name])
        except BaseException as error:
            here = f", which is not installed in {sys.executable}" if isinstance(error, ModuleNotFoundError) else ""
            said = f"{path.name} cannot be imported: {sentence(error, self.source)}{here}"
            begun = sys.modules.get(name)
            if begun is None or not (self.request.pictures or self.request.recorded):
                self.errors.append(said)
                return False
            # A script that wants arguments, or a GPU. What it has defined by then may be all that recorded calls need
            self.namespace, self.incomplete = vars(begun), said
        self.left_behind = LeftBehind(self.namespace)
        return True

    @cached_property
    def places(self) -> Places:
        return Places(self.source.path, self.namespace, self.workspace.codes.get)

    def trace(self, entry: Entry, partition: Partition) -> None:
        try:
            self.run(entry)
        except CannotBuild as error:
            reason = f"{error}; {self.incomplete}" if self.incomplete else str(error)
            self.fail(entry, reason, "needs-shapes" if error.needs_init else "failed")
            return
        except (NotKept, TraceTooLong) as error:
            self.fail(entry, str(error), "unsupported")
            return
        except BaseException as error:
            self.fail(entry, f"{entry.function} raises {sentence(error, self.source)}", "failed")
            return
        scope = self.scope()
        if scope is None:
            return
        before = len(partition.kept())
        some = partition.add_all(scope)
        found = self.found_elsewhere(scope, partition)
        if entry.picture is not None and entry.picture.around.autocast and len(partition.kept()) == before:
            how = autocast_words(entry.picture.around)
            self.fail(entry, f"was called under autocast ({how}), where generated kernels do not run", "unsupported")
        elif self.is_own and not (some or found) and (why := self.why_none(entry, scope, partition)) is not None:
            self.without_region.append(why)
        if some:
            left = partition.left()
            self.without_region += (
                f"{one.function}, line {n}, has no region: it {one.reason}" for n, one in left.items()
            )
            self.without_region += lines_without(scope, partition.regions(), left.keys(), MOST_CALLS)
        self.count(scope)

    @property
    def is_own(self) -> bool:
        """Whether regions are looked for in the file whose functions are run."""
        return self.source is self.workspace.traced

    def found_elsewhere(self, scope: Scope, partition: Partition) -> bool:
        """Whether the last run has regions in other files."""
        found = regions_elsewhere(scope, partition.kept()) if self.is_own else dict[str, Mapping[str, None]]()
        for file, places in found.items():
            self.elsewhere.setdefault(file, {}).update(places)
        return bool(found)

    def why_none(self, entry: Entry, scope: Scope, partition: Partition) -> str | None:
        """Why there is no region in what the entry runs."""
        if any(map(scope.is_in_file, scope.tape.activations)):
            return no_region(scope, partition.refused)
        first = next(iter(scope.tape.activations), None)
        if first is None or not scope.file_of(first).is_own:
            return None
        place = f"{Path(scope.file_of(first).source.path).name}, line {scope.function(first).lineno}"
        return f"{entry.function} runs no code of this file: it is in {place}, where there is no region"

    def scope(self) -> Scope | None:
        """Of the last run, in the traced file. It may have been imported under two names: as that of which code ran.
        None where another file's run has not come to it."""
        tape, values = self.recorder.tape, self.recorder.values
        files = [file for file in self.workspace.files if file.source is self.workspace.traced]
        scopes = [Scope(tape, values, here, self.workspace.files, self.constants) for here in files]
        reached = next((one for one in scopes if any(map(one.is_in_file, tape.activations))), None)
        return reached or (scopes[0] if self.is_own else None)

    def run(self, entry: Entry) -> None:
        """Leaves the tape of one run in the recorder. Raises what the user's code raises, or CannotBuild."""
        self.left_behind.taken_out()
        if not self.request.check:
            try:
                self.run_without_numbers(entry, answers_for_run=True)
                return
            except Exception as error:
                if not (is_about_fake_tensors(error) or self.recorder.was_asked):
                    raise
                failed = error
            small = self.elements() <= MAX_REAL_ELEMENTS
            if self.recorder.was_asked and not (small and is_about_fake_tensors(failed)):
                try:
                    self.run_without_numbers(entry, answers_for_run=False)
                    return
                except Exception as error:
                    _log.info("%s fails in both ways: %s", entry.function, sentence(error, self.source))
            if not small:
                raise failed
            _log.info("%s is run on real tensors: %s", entry.function, sentence(failed, self.source))
            self.with_numbers.add(entry.function)
            self.left_behind.taken_out()
        self.run_in(entry, None)

    def run_without_numbers(self, entry: Entry, answers_for_run: bool) -> None:
        """answers_for_run: a program that asks whether it is only traced is told no, and does what it does when it
        runs. It may then need numbers that there are not."""
        self.recorder.answers_for_run, self.recorder.was_asked = answers_for_run, False
        self.run_in(entry, WithoutNumbers(allow_non_fake_inputs=True))

    def elements(self) -> int:
        values = self.recorder.values
        return sum(values.tensor(number).numel() for number in values.infos)

    def run_in(self, entry: Entry, mode: FakeTensorMode | None) -> None:
        """Told that its tensors are on a GPU, or else on the CPU."""
        if entry.function not in self.on_cpu:
            try:
                with answering(gpu=True):
                    self.run_as_answered(entry, mode)
                return
            except Exception as error:
                if not ANSWERS.asked:
                    raise
                _log.info("%s is told the CPU: %s", entry.function, sentence(error, self.source))
            self.left_behind.taken_out()
        with answering(gpu=False):
            self.run_as_answered(entry, mode)
        self.on_cpu.add(entry.function)  # unless it fails in both ways, as for want of numbers

    def run_as_answered(self, entry: Entry, mode: FakeTensorMode | None) -> None:
        """With numbers that vary, where the run does the same with other ones."""
        Runs(self.recorder, entry, self.source, lambda inputs: self.run_once(entry, mode, inputs)).leave_tape()

    def run_once(self, entry: Entry, mode: FakeTensorMode | None, inputs: Inputs) -> None:
        self.recorder.begin(keep_copies=self.request.check)
        torch.random.manual_seed(self.seed)  # pyright: ignore[reportUnknownMemberType]
        constants = self.constants = Constants(real=mode is None)
        builder = Builder(self.places, mode, constants)
        sizes = self.sizes_of_data.setdefault(entry.function, SizesOfData(self.source.path, _names_of(entry)))
        with torch.no_grad(), OneDevice(), DataSizes(sizes, constants, lambda size, _: self.pick(size)), constants:
            with GradMode().without_inference():
                ready = builder.ready(entry)
            inputs.watch.forget = constants.forget
            ready = inputs.given_to(ready) if entry.kind != "kernelbench" else ready
            with builder.within(), as_recorded(ready.around), self.recorder.recording(ready.without_gradients):
                ready.function(*ready.args, **ready.kwargs)

    def fail(self, entry: Entry, reason: str, status: Status) -> None:
        where = entry.range
        text = self.source.lines[where.start.line].strip()
        self.failed.append(Region(entry.function, where, "statements", text, status=status, reason=reason))

    def count(self, scope: Scope) -> None:
        tape = scope.tape
        self.operators += sum(1 for event in tape.events if isinstance(event, Record) and event.outputs)
        for event in tape.events:
            if isinstance(event, Record) and event.problem is not None:
                self.barriers[event.target] += 1
            elif isinstance(event, Happening) and event.problem is not None:
                self.barriers[event.name if event.name != STATEMENT else event.problem] += 1
        for activation in tape.activations:
            if scope.is_in_file(activation):
                self.ran.add(scope.name_of(activation))
