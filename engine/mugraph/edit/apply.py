"""The edit of the user's file: each region's code is kept, and runs wherever the kernel does not fit.

    if mugraph_kernels.norm_linear_fits(self, x):  # mugraph: 3fa9c21b04
        y = mugraph_kernels.norm_linear(self, x)
    else:
        <the original statements, one level deeper, otherwise untouched>

Only the regions' own lines and one import are touched; the rest stays as it is to the byte, so the edit is made of text
at exact offsets, and Python's own parser is the judge of it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mugraph.edit.check import check_edit, edited_spans
from mugraph.edit.module.evidence import Speed
from mugraph.edit.module.file import module_text
from mugraph.edit.module.globals_read import with_looked_up
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_NAME
from mugraph.edit.names import ALIAS, module_name, mugraph_id
from mugraph.edit.region.replaced import Replacement, replacement
from mugraph.edit.source.files import write_both
from mugraph.edit.source.imports import import_offset, import_statement
from mugraph.edit.source.indent import string_lines
from mugraph.edit.source.record import Record, Replaced, text_hash
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.ir.kernel import KernelSource
from mugraph.ir.names import numbered, unused
from mugraph.ir.region import Range
from mugraph.plans.plan import RegionPlan
from mugraph.targets import Target

__all__ = ["EditError", "Edited", "Prepared", "apply", "apply_files", "edited", "prepare"]


@dataclass(frozen=True)
class Edited:
    """The file after the edit, and what undoing it needs."""

    source: bytes
    record: Record


@dataclass(frozen=True)
class Prepared:
    """The files of an edit, not yet written.

    path:         of the user's file
    source:       its text
    module:       path of the kernel module
    module_text:  its text (UTF-8)
    runtime:      path of what kernel modules share; it is there already where another module has it
    runtime_text: its text
    """

    path: Path
    source: bytes
    module: Path
    module_text: str
    runtime: Path
    runtime_text: str = RUNTIME

    @property
    def created(self) -> dict[Path, str]:
        """The files to create, with their texts."""
        try:
            there = self.runtime.read_bytes() == self.runtime_text.encode()
        except OSError:
            there = False
        return ({} if there else {self.runtime: self.runtime_text}) | {self.module: self.module_text}


def apply(source: bytes, path: Path, plans: Sequence[RegionPlan], module_name: str) -> bytes:
    """The text of the user's file with every plan's region replaced. Raises EditError, one sentence for the user."""
    return edited(source, path, plans, module_name).source


def edited(source: bytes, path: Path, plans: Sequence[RegionPlan], module_name: str) -> Edited:
    """As `apply`, with the record that undoing needs."""
    if not plans:
        raise EditError(f"There is nothing to replace in {path.name}.")
    file = SourceFile.decode(source)
    tree = _parsed(file, path)
    plans = [with_looked_up(plan, file.text) for plan in plans]
    alias = _free_alias(tree)
    in_string, taken = string_lines(file), edited_spans(tree, file)
    places: dict[Range, list[RegionPlan]] = {}
    for plan in plans:
        places.setdefault(plan.region.range, []).append(plan)
    made = sorted(
        (replacement(file, tree, alike, alias, in_string) for alike in places.values()),
        key=lambda one: (one.start, one.end),
    )
    for first, second in pairwise(made):
        if second.start < first.end:
            raise EditError(f"The regions of {first.name} and {second.name} overlap in {path.name}.")
    for one in made:
        if any(one.start < end and start < one.end for start, end in taken):
            function = one.plans[0].region.function
            raise EditError(f"{function} in {path.name} is replaced already; revert the file first.")
    import_text = import_statement(tree, path, module_name, alias)
    at = import_offset(tree, file, import_text, path.parent)
    if at > 0 and file.text[at - 1] not in "\r\n":
        import_text = "\n" + import_text.removesuffix("\n")
    text = _spliced(file.text, [(at, at, import_text), *((one.start, one.end, one.text) for one in made)])
    after = file.with_text(text)
    record = Record(
        path.name,
        alias,
        import_text,
        file.newline,
        text_hash(source),
        text_hash(after.encode()),
        tuple(_replaced(one, alias) for one in made),
    )
    check_edit(file, after, record)
    return Edited(after.encode(), record)


def _spliced(text: str, units: Sequence[tuple[int, int, str]]) -> str:
    """The text with each [start, end) replaced; where two start together, the insertion comes first."""
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(units, key=lambda unit: unit[:2]):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _replaced(one: Replacement, alias: str) -> Replaced:
    also = tuple(plan.name for plan in one.plans[1:])
    return Replaced.of(mugraph_id(one.plans[0]), f"{alias}.{one.name}_fits(", one.text, one.original, also)


def _parsed(file: SourceFile, path: Path) -> ast.Module:
    try:
        return ast.parse(file.text)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"{path.name} is not valid Python ({error}).") from None


def _free_alias(tree: ast.Module) -> str:
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used |= {node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    named = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    used |= {node.name for node in ast.walk(tree) if isinstance(node, named)}
    return unused(numbered(f"_{ALIAS}" if "*" in used else ALIAS), used)


def prepare(
    source: bytes,
    path: Path,
    plans: Sequence[RegionPlan],
    kernels: Mapping[str, KernelSource],
    *,
    target: Target | None = None,
    speeds: Mapping[str, Speed] | None = None,
) -> Prepared:
    """The files of the edit, for a preview or an editor's workspace edit. Writes nothing.

    A file that has kernel modules already gets one more ("model_mugraph_2.py"); each can be undone by itself.
    Raises EditError, or ir.kernel.Rejected when the plans cannot be written.
    """
    number = 1
    while (module := path.with_name(f"{module_name(path, number)}.py")).exists():
        number += 1
    change = edited(source, path, plans, module.stem)
    text = module_text(
        plans,
        kernels,
        original_path=path,
        target=target,
        speeds=speeds,
        record=change.record,
        edited=_text(change.source),
    )
    return Prepared(path, change.source, module, text, path.with_name(f"{RUNTIME_NAME}.py"))


def _text(source: bytes) -> str:
    return SourceFile.decode(source).text


def apply_files(
    path: Path,
    plans: Sequence[RegionPlan],
    kernels: Mapping[str, KernelSource],
    *,
    target: Target | None = None,
    speeds: Mapping[str, Speed] | None = None,
) -> Prepared:
    """Writes the kernel module and the edited file, both or neither, and what kernel modules share.

    Raises EditError (one sentence) with the files as they were: the folder cannot be written, the file has changed.
    """
    path = path.resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise EditError(f"{path} cannot be read ({error.strerror}).") from None
    ready = prepare(source, path, plans, kernels, target=target, speeds=speeds)
    shared = {file: text.encode() for file, text in ready.created.items() if file != ready.module}
    write_both(path, source, ready.source, ready.module, ready.module_text.encode(), shared)
    return ready
