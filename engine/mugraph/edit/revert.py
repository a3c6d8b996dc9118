"""`mugraph revert`: gives the user's own text back, to the byte."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.edit.module.runtime import RUNTIME_FILE
from mugraph.edit.names import module_name
from mugraph.edit.source.files import users_of, write_one
from mugraph.edit.source.record import Record, read_record, text_hash
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.edit.undo import undo
from mugraph.trace.syntax.package import top_of

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_SEARCHED_FILES = 5_000
"""Python files looked at, at most, for other users of a kernel module."""


@dataclass(frozen=True)
class Reverted:
    """
    regions: how many replaced parts were put back
    deleted: kernel modules that were removed, and what they shared
    kept:    kernel modules that another file imports
    """

    path: Path
    regions: int
    deleted: tuple[Path, ...]
    kept: tuple[Path, ...]


def kernel_modules(path: Path) -> list[tuple[Path, Record]]:
    """The kernel modules written for a source file, the latest first. Raises EditError for a damaged one."""
    stem = re.compile(rf"{re.escape(module_name(path))}(?:_(\d+))?")
    found: list[tuple[int, Path, Record]] = []
    for module in path.parent.glob("*.py"):
        if match := stem.fullmatch(module.stem):
            record = read_record(module)
            if record is not None and record.file == path.name:
                found.append((int(match[1] or 1), module, record))
    return [(module, record) for _, module, record in sorted(found, reverse=True)]


def reverted(source: bytes, path: Path) -> tuple[bytes, Reverted]:
    """The file's text with every edit undone, and what reverting it would do; writes nothing.

    Parts of the file that were not replaced keep what the user has made of them since. Raises EditError (one sentence)
    when there is nothing to undo or when a replaced part was edited by hand.
    """
    modules = kernel_modules(path)
    if not modules:
        raise EditError(f"There is nothing to undo: no kernel module of {path.name} lies beside it.")
    file, regions = SourceFile.decode(source), 0
    for _, record in modules:
        before = file
        if record.alias not in before.text:  # undone by other means already (git checkout): only the module is left
            continue
        file = undo(before, record)
        regions += len(record.regions)
        if text_hash(before.encode()) == record.edited and text_hash(file.encode()) != record.original:
            raise EditError(f"The record in {path.name}'s kernel module is damaged; nothing was changed.")
    used = {module: _used_elsewhere(module, path) for module, _ in modules}
    deleted = tuple(module for module, elsewhere in used.items() if not elsewhere)
    kept = tuple(module for module, elsewhere in used.items() if elsewhere)
    return file.encode(), Reverted(path, regions, (*deleted, *_shared_by(deleted)), kept)


def revert_file(path: Path) -> Reverted:
    """Undoes every edit of the file and deletes its kernel modules.

    Raises EditError as `reverted` does, or when the folder cannot be written, with everything as it was.
    """
    path = path.resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise EditError(f"{path} cannot be read ({error.strerror}).") from None
    after, done = reverted(source, path)
    write_one(path, source, after)
    for module in done.deleted:
        with contextlib.suppress(OSError):  # the user's file is right already; a module left over does no harm
            module.unlink()
    return done


def _shared_by(modules: Sequence[Path]) -> list[Path]:
    """What only these modules share: the files of the runtime that no other module reads."""
    named = {module.with_name(f"{name}.py"): None for module in modules for name in _runtimes(module)}
    return [runtime for runtime in named if runtime.exists() and not users_of(runtime, modules)]


def _runtimes(module: Path) -> list[str]:
    try:
        return RUNTIME_FILE.findall(module.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return []


def _used_elsewhere(module: Path, path: Path) -> bool:
    """Whether another Python file of the project names the module. The kernel modules of other files name it without an
    import: in what they compare the code with that they were made for."""
    name = re.compile(rf"\b{re.escape(module.stem)}\b".encode())
    for other in _python_files(top_of(path)):
        if other not in (module, path):
            with contextlib.suppress(OSError):
                if name.search(other.read_bytes()) and not _is_kernel_module(other):
                    return True
    return False


def _is_kernel_module(path: Path) -> bool:
    try:
        return read_record(path) is not None
    except EditError:  # one edited by hand, which may import anything
        return False


def _python_files(folder: Path) -> Iterator[Path]:
    count = 0
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in sorted(files):
            if name.endswith(".py"):
                count += 1
                if count > _SEARCHED_FILES:
                    return
                yield Path(root, name)
