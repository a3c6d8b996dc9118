"""One traced file, inside the process that may run the user's code: load, build, run, partition."""

from __future__ import annotations

import importlib
import logging
import sys
import traceback
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import CodeType

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mugraph.ir.ranges import Take, takes
from mugraph.ir.region import Region, Status, Trace
from mugraph.nested import Reached, until_called_for
from mugraph.trace.decisions import decisions
from mugraph.trace.pytorch.callables import Judge
from mugraph.trace.regions.check import check_found
from mugraph.trace.regions.dynamic import with_ranges
from mugraph.trace.regions.no_region import lines_without, no_region
from mugraph.trace.regions.partition import MOST_CALLS, Partition
from mugraph.trace.regions.scope import Scope
from mugraph.trace.report import needs_shapes, notices, selected
from mugraph.trace.request import Request
from mugraph.trace.run.around import as_recorded, autocast_words
from mugraph.trace.run.autocast import remember_what_is_wanted
from mugraph.trace.run.build import Builder, CannotBuild
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.devices import OneDevice
from mugraph.trace.run.entries import Definitions, Entry, find_definitions
from mugraph.trace.run.libraries import Libraries
from mugraph.trace.run.loader import Workspace, WorkspaceFinder
from mugraph.trace.run.places import Places
from mugraph.trace.run.rebuild import NotKept
from mugraph.trace.run.recorder import Recorder
from mugraph.trace.run.tape import Happening, Record, Tape
from mugraph.trace.run.tape_writer import TraceTooLong
from mugraph.trace.syntax.source import Source, read_source, text_digest

_log = logging.getLogger("mugraph.trace")


def package_of(path: Path) -> tuple[Path, str, str | None]:
    """The folder that imports start from, the module's dotted name, and its package (None at the top)."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    if path.stem == "__init__":
        names.pop()
        return folder, ".".join(names), ".".join(names) or None
    return folder, ".".join(names), ".".join(names[:-1]) or None


def sentence(error: BaseException, source: Source) -> str:
    """One line: what was raised, and where in the file."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source.path]
    return f"{said} (line {lines[-1]})" if lines else said


def is_about_fake_tensors(error: BaseException) -> bool:
    """Whether the run failed because tensors had no numbers, so that one with real tensors may work."""
    chain: BaseException | None = error
    while chain is not None:
        if type(chain).__module__.startswith("torch._subclasses") or "fake" in str(chain).lower():
            return True
        chain = chain.__cause__ or chain.__context__
    return False


MAX_REAL_ELEMENTS = 1 << 26  # what a second run on real tensors may take


@dataclass
class Session:
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
    constants: Constants = field(default_factory=lambda: Constants(real=True))
    incomplete: str = ""  # why the file was not imported to its end

    def load(self) -> bool:
        remember_what_is_wanted()
        path = Path(self.source.path)
        top, name, package = package_of(path)
        if str(top) not in sys.path:
            sys.path.insert(0, str(top))
        for picture in self.request.pictures.values():
            sys.path += [place for place in picture.around.path if place not in sys.path and Path(place).is_dir()]
            if picture.module.rpartition(".")[2] == path.stem != "__init__":  # as the program imported it
                name, package = picture.module, picture.module.rpartition(".")[0] or None
        sys.meta_path.insert(0, WorkspaceFinder(self.workspace))
        self.recorder.before = Libraries(self.workspace).prepare
        sys.argv = [self.source.path]
        try:
            if package is not None and path.stem != "__init__":
                importlib.import_module(package)
            wanted = {*self.request.pictures, *(self.request.recorded or {}), *filter(None, [self.request.qualname])}
            with until_called_for(wanted):
                self.namespace = self.workspace.run(name, package)
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
        tape, values = self.recorder.tape, self.recorder.values
        here = next(file for file in self.workspace.files if file.source is self.source)
        scope = Scope(tape, values, here, self.workspace.files, self.constants)
        before = len(partition.kept())
        some = partition.add_all(scope)
        if entry.picture is not None and entry.picture.around.autocast and len(partition.kept()) == before:
            how = autocast_words(entry.picture.around)
            self.fail(entry, f"was called under autocast ({how}), where generated kernels do not run", "unsupported")
        elif not some and (why := no_region(scope, partition.refused) or self.elsewhere(entry, scope)) is not None:
            self.without_region.append(why)
        if some:
            left = partition.left()
            self.without_region += (
                f"{one.function}, line {n}, has no region: it {one.reason}" for n, one in left.items()
            )
            self.without_region += lines_without(scope, partition.regions(), left.keys(), MOST_CALLS)
        self.count(tape, scope)

    def elsewhere(self, entry: Entry, scope: Scope) -> str | None:
        """Where the code is that the entry runs; None where some of it is in the file."""
        if any(map(scope.is_in_file, scope.tape.activations)):
            return None
        method = getattr(self.namespace.get(entry.owner or ""), "forward", None)
        code = getattr(method, "__code__", None)
        if not isinstance(code, CodeType) or Path(code.co_filename).resolve() == Path(self.source.path).resolve():
            return None
        place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
        return (
            f"{entry.function} runs no code of this file: it is in {place}; kernels are found in the file that has the "
            "code, with shapes of its own or those of a run (mugraph record -- python PROGRAM)"
        )

    def run(self, entry: Entry) -> None:
        """Leaves the tape of one run in the recorder. Raises what the user's code raises, or CannotBuild."""
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
        self.run_in(entry, None)

    def run_without_numbers(self, entry: Entry, answers_for_run: bool) -> None:
        """answers_for_run: a program that asks whether it is only traced is told no, and does what it does when it
        runs. It may then need numbers that there are not."""
        self.recorder.answers_for_run, self.recorder.was_asked = answers_for_run, False
        self.run_in(entry, FakeTensorMode(allow_non_fake_inputs=True))

    def elements(self) -> int:
        values = self.recorder.values
        return sum(values.tensor(number).numel() for number in values.infos)

    def run_in(self, entry: Entry, mode: FakeTensorMode | None) -> None:
        self.recorder.begin(keep_copies=self.request.check)
        torch.random.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
        constants = self.constants = Constants(real=mode is None)
        builder = Builder(self.places, mode, constants)
        with torch.no_grad(), OneDevice(), constants:
            ready = builder.ready(entry)
            with builder.within(), as_recorded(ready.around), self.recorder.recording():
                ready.function(*ready.args, **ready.kwargs)

    def fail(self, entry: Entry, reason: str, status: Status) -> None:
        where = entry.range
        text = self.source.lines[where.start.line].strip()
        self.failed.append(Region(entry.function, where, "statements", text, status=status, reason=reason))

    def count(self, tape: Tape, scope: Scope) -> None:
        self.operators += sum(1 for event in tape.events if isinstance(event, Record) and event.outputs)
        for event in tape.events:
            if isinstance(event, Record) and event.problem is not None:
                self.barriers[event.target] += 1
            elif isinstance(event, Happening) and event.problem is not None:
                self.barriers[event.name if event.name != "statement" else event.problem] += 1
        for activation in tape.activations:
            if scope.is_in_file(activation):
                self.ran.add(scope.name_of(activation))


def _definitions(session: Session, pick: Take) -> Definitions:
    return find_definitions(session.source, session.request.recorded, pick, session.request.pictures)


def _at(session: Session, functions: Collection[str], pick: Take) -> list[Region]:
    """The regions at one size of every declared range."""
    entries = _definitions(session, pick).entries
    other = Session(session.request, session.source, session.recorder, session.workspace, session.namespace)
    partition = Partition()
    for entry in entries:
        if entry.function in functions:
            other.trace(entry, partition)
    return [*partition.regions(), *other.failed]


def trace_request(request: Request) -> Trace:
    path = Path(request.path)
    source = Source(request.path, request.source if request.source is not None else read_source(path))
    definitions = find_definitions(source, request.recorded, pictures=request.pictures)
    recorder = Recorder(Judge())
    top, _, _ = package_of(path)
    cwd = Path.cwd()
    root = cwd if path.resolve().is_relative_to(cwd) else top.resolve()
    session = Session(request, source, recorder, Workspace(root, recorder, source))
    if not session.load():
        return Trace(request.path, errors=tuple(session.errors))
    partition = Partition()
    wanted = [entry for entry in definitions.entries if selected(entry.function, request.qualname)]
    for entry in wanted or definitions.entries:
        session.trace(entry, partition)
    regions = [*partition.regions(), *session.failed]
    ranges = {e.function: e.sizes for e in wanted or definitions.entries if e.sizes}
    if ranges:
        chosen = {entry.function: entry for entry in wanted or definitions.entries}
        taken = takes([one for sizes in ranges.values() if len(sizes) > 1 for one in sizes])
        samples = [_at(session, chosen.keys(), take) for take in taken]
        decided, called = decisions(partial(_definitions, session), session.places, chosen)
        regions = with_ranges(regions, samples, taken, ranges, decided, called)
    if request.check:
        session.errors.extend(check_found(partition))
    regions.extend(needs_shapes(lack) for lack in definitions.missing if lack.function not in session.ran)
    if not wanted:  # it is part of something that has shapes, or has none
        regions = [region for region in regions if selected(region.function, request.qualname)]
    else:  # whatever the entry asked for ran, but nothing else
        regions = [r for r in regions if r.status != "needs-shapes" or selected(r.function, request.qualname)]
    return Trace(
        request.path,
        tuple(sorted(regions, key=lambda region: region.range.start)),
        tuple(session.errors),
        session.operators,
        dict(session.barriers.most_common()),
        {f.source.path: text_digest(f.source.text) for f in session.workspace.files if f.source is not source},
        (*notices(definitions, regions, request.qualname), *dict.fromkeys(session.without_region)),
    )
