"""Kernels to fit the cost model to: found without a GPU, measured on one.

    python -m mugraph.research.candidates find FILE PROGRAMS... [--target NAME] [--budget S] [--most N]
    python -m mugraph.research.candidates measure FILE [--seconds S]

`find` searches each search unit of the programs, and adds some of its candidates to the file: the best by estimate, and
others at even distances down the ranking. `measure` times those that have no time yet. Both can be called again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from mugraph.codegen.lower import lower_kernels
from mugraph.executors.choose import choose
from mugraph.ir.block import Candidate
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.renaming import canonical
from mugraph.options import Bounds
from mugraph.research.measured import Measured, Program, Row, candidates_of, read, rows_of, write
from mugraph.solve.ranking import ranked_candidates
from mugraph.solve.telling import Place, Telling
from mugraph.solve.testing import output_names
from mugraph.solve.tools import Tools
from mugraph.solve.writing import kernels_of
from mugraph.targets import TARGETS, Target
from mugraph.trace.tracer import trace_file
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import detect
from mugraph.tune.input_specs import input_specs
from mugraph.tune.measure import METHOD, Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import Unavailable
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import subject_of
from mugraph.units.region_units import cut_region
from mugraph.verification.float_test import FloatTester

_BEST = 0.5
"""Of the candidates that are kept, how many are the first of the ranking."""
_AT_ONCE = 8
"""Programs whose kernels are compiled together."""

Ready = tuple[Row, Subject, tuple[InputSpec, ...]]


def find(path: Path, files: Sequence[Path], target: Target, seconds: float, most: int) -> int:
    """How many programs the file has now."""
    measured = read(path) if path.exists() else Measured(target.name, [])
    known = {msgspec.json.encode(one.program) for one in measured.programs}
    with FloatTester() as tester, closing(choose("processes")) as executor:
        tools = Tools(target, tester, executor=executor)
        for name, unit in _units(files):
            program = canonical(unit.program)[0]
            key = msgspec.json.encode(msgspec.to_builtins(program_to_json(program)))
            if program.least or key in known:
                continue
            known.add(key)
            found = ranked(program, tools, seconds)
            chosen = _some([one for one in found if _text(one, program, target) is not None], most)
            if chosen:
                topologies, rows = rows_of(chosen)
                measured.programs.append(Program(name, program_to_json(program), topologies, rows))
                write(measured, path)
            print(f"{name}: {len(chosen)} of {len(found)} candidates", flush=True)
    return len(measured.programs)


def _units(files: Sequence[Path]) -> Iterator[tuple[str, SearchUnit]]:
    for file in files:
        for region in trace_file(file, timeout_s=600).regions:
            if region.status is None:
                units = [part for part in cut_region(region, [])[1] if isinstance(part, SearchUnit)]
                yield from ((f"{file.stem}:{region.function}:{at}", unit) for at, unit in enumerate(units))


def ranked(program: TensorProgram, tools: Tools, seconds: float) -> list[Candidate]:
    """Of a search of so many seconds, the best by estimate first."""
    telling = Telling(Place(0, 0, 1, program.name, program.name))
    until = time.monotonic() + 4 * seconds
    steps = ranked_candidates(program, telling, tools, Bounds(seconds=seconds), lambda: time.monotonic() > until)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return [candidate for candidate, _ in ended.value.candidates]


def _some(ranked: Sequence[Candidate], most: int) -> list[Candidate]:
    """The first ones, and others spread over the rest."""
    first = ranked[: round(most * _BEST)]
    rest = ranked[len(first) :]
    step = max(1, len(rest) // max(1, most - len(first)))
    return [*first, *islice(rest[::step], most - len(first))]


def _text(candidate: Candidate, program: TensorProgram, target: Target) -> KernelSource | None:
    try:
        return lower_kernels(kernels_of(candidate), target=target, outputs=output_names(program), program=program)
    except Rejected:  # one candidate of many
        return None


def measure(path: Path, seconds: float) -> str | None:
    """Time what has no time yet, until so many seconds are over. Why nothing can be measured, in one sentence, or
    None."""
    device = detect()
    if device.kind != "gpu":
        return device.note or "there is no GPU here to measure on"
    measured = read(path)
    target, until = TARGETS[measured.target], time.monotonic() + seconds
    waiting = [one for one in measured.programs if any(row.us is None and not row.why for row in one.rows)]
    with Measurer() as measurer, CompilePool() as pool:
        try:
            measured.versions = dict(measurer.hello().versions)
        except Unavailable as error:
            return str(error)
        measured.device, measured.method = device.name, METHOD
        measured.date = datetime.now(UTC).date().isoformat()
        while waiting and time.monotonic() < until:
            some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            _timed([ready for program in some for ready in _ready(program, target)], measurer, pool)
            write(measured, path)
    rows = [row for program in measured.programs for row in program.rows]
    print(f"{sum(row.us is not None for row in rows)} of {len(rows)} kernels have times in {path}")
    return None


def _ready(program: Program, target: Target) -> Iterator[Ready]:
    meant = program_from_json(program.program)
    for row, candidate in candidates_of(program):
        if row.us is not None or row.why:
            continue
        source = _text(candidate, meant, target)
        if source is None:
            row.why = "it cannot be written"
        else:
            specs = input_specs(meant, [tensor.name for tensor in source.inputs])
            yield row, replace(subject_of(source), name=program.name), specs


def _timed(ready: Sequence[Ready], measurer: Measurer, pool: CompilePool) -> None:
    asked = [(subject, specs) for _, subject, specs in ready]
    for (row, subject, specs), why in zip(ready, pool.compile(asked), strict=True):
        found = None if why is not None else measurer.measure_kernel(subject, specs, rounds=12)
        if isinstance(found, Summary):
            row.us = round(found.median_us, 3)
        else:
            row.why = why or (found.reason if found is not None else "")


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.candidates")
    parser.add_argument("what", choices=["find", "measure"])
    parser.add_argument("file", type=Path)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--target", choices=sorted(TARGETS), default="h200")
    parser.add_argument("--budget", type=float, default=4.0)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=540.0)
    given = parser.parse_args(arguments)
    try:
        if given.what == "find":
            count = find(given.file, given.programs, TARGETS[given.target], given.budget, given.most)
            print(f"{count} programs in {given.file}")
            return 0
        why = measure(given.file, given.seconds)
    except (OSError, msgspec.DecodeError) as error:
        why = f"the candidates cannot be read: {error}"
    if why is not None:
        print(why, file=sys.stderr)
    return 0 if why is None else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
