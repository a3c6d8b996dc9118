"""Generated kernel modules checked again: is the code they replaced as it was, are they as they were written, and are
their μGraphs still the same functions as their programs?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.checking.run import function_of
from mugraph.edit.module.carried import Carried, carried, is_sealed
from mugraph.edit.module.runtime import runtime_trouble
from mugraph.edit.names import module_name
from mugraph.edit.revert import kernel_modules
from mugraph.edit.source.record import Record, read_record, text_hash
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.edit.undo import undo
from mugraph.verification.document import verify_mugraph
from mugraph.verification.verifier import fresh_seed

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})


@dataclass(frozen=True)
class Here:
    """Where the check runs. gpu: the name of the GPU; None without one. versions: of mugraph, torch and triton."""

    gpu: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Checked:
    """One region of a kernel module. problems: one sentence each; none where all holds. seeds: of the random
    inputs that each of its kernels was verified with. kernels: what the module carries of them"""

    file: Path
    module: Path
    function: str
    problems: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    kernels: tuple[Carried, ...] = ()


def modules_in(paths: Sequence[Path]) -> Iterator[tuple[Path, Record | str]]:
    """The kernel modules among files, of files, and in folders, each with its record, or why that cannot be read."""
    seen: set[Path] = set()
    for path in paths:
        for file in _python_files(path):
            real = file.resolve()
            if real in seen:
                continue
            seen.add(real)
            try:
                record = read_record(file)
            except EditError as error:
                yield file, str(error)
                continue
            if record is not None:
                yield file, record


def check_again(module: Path, record: Record, here: Here, seed: int | None = None) -> list[Checked]:
    """Of each region of the module. seed: of what the verifier draws; None takes for each kernel the
    one of its first verification, which is in the evidence"""
    text = module.read_text(encoding="utf-8")
    file = module.with_name(record.file)
    common = list(_of_source(file, record))
    if not is_sealed(text):
        common.append(f"{module.name} was edited since it was written: its kernels are not those that were tested")
    trouble = runtime_trouble(module, text)
    common += [trouble] if trouble else []
    found = carried(text)
    evidence = found or {}
    if found is None:
        common.append(f"{module.name} carries no evidence that can be read")
    checked: list[Checked] = []
    for region in record.regions:
        name, *also = region.names(record)
        problems, seeds, kernels = list(common), list[int](), list[Carried]()
        for one in (name, *also) if found is not None else ():
            steps = [_seeded(step, seed) for step in evidence.get(one, ())]
            problems += _of_evidence(one, steps, here)
            seeds += [own for _, own in steps]
            kernels += [step for step, _ in steps]
        function = function_of(file, f"{record.alias}.{name}_fits") or name
        checked.append(Checked(file, module, function, tuple(problems), tuple(seeds), tuple(kernels)))
    return checked


def _of_source(file: Path, record: Record) -> Iterator[str]:
    try:
        source = file.read_bytes()
    except OSError as error:
        yield f"{file.name}, which the kernels are for, cannot be read ({error.strerror or error})"
        return
    try:
        edited = SourceFile.decode(source)
        if record.alias not in edited.text:
            yield f"{file.name} does not use its kernels any more; mugraph revert {file.name} removes them"
            return
        before = undo(edited, record)
    except EditError as error:
        yield str(error)
        return
    if text_hash(source) == record.edited and text_hash(before.encode()) != record.original:
        yield f"the record of what stood in {file.name} is damaged"


def _seeded(step: Carried, seed: int | None) -> tuple[Carried, int]:
    """With the seed that is given, else its own, else a fresh one."""
    if seed is not None:
        return step, seed
    return step, fresh_seed() if step.verdict.seed is None else step.verdict.seed


def _of_evidence(name: str, steps: Sequence[tuple[Carried, int]], here: Here) -> Iterator[str]:
    if not steps:
        yield f"there is no evidence for {name}"
        return
    for step, seed in steps:
        verdict = step.verdict
        kernel = step.graph.name
        if not verdict.passed or verdict.max_rel_error is None:
            yield f"{kernel} was not tested in floating point"
        for what, version in verdict.versions.items():
            now = here.versions.get(what, "none")
            if _public(version) != _public(now):
                yield f"{kernel} was tested with {what} {version}, here is {now}"
        if here.gpu is not None and verdict.float_device not in (here.gpu, None):
            where = "in Triton's interpreter" if verdict.float_device == "interpreter" else f"on {verdict.float_device}"
            yield f"{kernel} was tested {where}, here is {here.gpu}"
        again = verify_mugraph(step.program, step.graph, seed)
        if not again.passed:
            yield f"{kernel} is not the function that it replaces: {again.reason}"
        elif verdict.proof is not None and verdict.proof.proved and not (again.proof and again.proof.proved):
            why = again.proof.note if again.proof else "no proof was tried"
            yield f"{kernel} is said to be proved, and is not: {why}"


def _public(version: str) -> str:
    """Without how it was built: 2.13.0 of "2.13.0+cpu"."""
    return version.partition("+")[0]


def _python_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        try:
            yield from (module for module, _ in kernel_modules(path))  # of the user's file
        except EditError:  # which is said of the module itself
            yield path.with_name(f"{module_name(path)}.py")
        return
    for root, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(root, name)
