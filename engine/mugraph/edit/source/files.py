"""Writing and removing the files of an edit: atomically, and all or nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from mugraph.edit.source.text import EditError


def _temporary(path: Path, content: bytes) -> Path:
    """A complete file with this content beside `path`, on the same file system, with its permissions if it exists."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        else:
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _place(temporary: Path, path: Path) -> None:
    """Moves the file to its name. Raises FileExistsError if there is one: it would be overwritten silently."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.replace(temporary, path)


def _refusal(path: Path, error: OSError) -> EditError:
    return EditError(f"{path} cannot be written ({error.strerror or error}); nothing was changed.")


def write_both(
    path: Path, before: bytes, after: bytes, module: Path, content: bytes, shared: Mapping[Path, bytes]
) -> None:
    """Writes `module`, which must not exist, and then `path`, which must still hold `before`.

    The module goes first: a crash between the two leaves a module nobody imports, never an import of nothing. Before
    it go the files that modules share: what one of them holds follows from its name, so it may be there.
    """
    temporaries: list[Path] = []
    placed = False
    added = [file for file in shared if not file.exists()]
    try:
        for file, text in shared.items():
            temporaries.append(_temporary(file, text))
            os.replace(temporaries[-1], file)
        temporaries.append(_temporary(module, content))
        temporaries.append(_temporary(path, after))
        _place(temporaries[-2], module)
        placed = True
        if path.read_bytes() != before:
            raise EditError(f"{path.name} was changed by something else meanwhile; nothing was changed, try again.")
        os.replace(temporaries[-1], path)
    except BaseException as error:
        if placed:
            with contextlib.suppress(OSError):
                module.unlink()
        for file in added:
            remove_unused(file)
        if isinstance(error, FileExistsError):
            raise EditError(f"{module.name} was written by something else meanwhile; nothing was changed.") from None
        if isinstance(error, OSError):
            raise _refusal(path, error) from None
        raise
    finally:
        for temporary in temporaries:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def users_of(file: Path, without: Collection[Path] = ()) -> list[Path]:
    """The Python files beside a file that name it."""
    name, found = file.stem.encode(), list[Path]()
    for other in file.parent.glob("*.py"):
        with contextlib.suppress(OSError):
            if other != file and other not in without and name in other.read_bytes():
                found.append(other)
    return found


def remove_unused(file: Path) -> None:
    """Removes a file that modules shared, if none is left."""
    with contextlib.suppress(OSError):
        if not users_of(file):
            file.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that no one else changes, so that a reader sees all of it."""
    os.replace(_temporary(path, content), path)


def write_one(path: Path, before: bytes, after: bytes) -> None:
    """Replaces the file, which must still hold `before`."""
    temporary: Path | None = None
    try:
        temporary = _temporary(path, after)
        if path.read_bytes() != before:
            raise EditError(f"{path.name} was changed by something else meanwhile; nothing was changed, try again.")
        os.replace(temporary, path)
    except OSError as error:
        raise _refusal(path, error) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
