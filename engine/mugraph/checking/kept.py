"""The last check of a file that is kept: beside the recordings, one small JSON file for each source file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.checking.run import RegionRun
from mugraph.store.place import cache_folder

FORMAT = 1


class Refused(msgspec.Struct, frozen=True):
    why: str
    calls: int


class Kept(msgspec.Struct, frozen=True):
    """Of one region. id: of the code and μGraph that were checked."""

    name: str
    id: str
    function: str
    calls: int
    taken: int
    refused: list[Refused] = []

    @property
    def words(self) -> str:
        """ "taken 56 of 63 calls in the last check; first refused: x has 16 rows, the kernel is for 2"."""
        if not self.calls:
            return "not called in the last check"
        said = f"taken {self.taken} of {self.calls} call{'' if self.calls == 1 else 's'} in the last check"
        return f"{said}; first refused: {self.refused[0].why}" if self.refused else said


class _File(msgspec.Struct):
    path: str
    regions: list[Kept]
    format: int = FORMAT


def keep(path: Path, regions: Sequence[RegionRun]) -> None:
    """In place of what was known of the file. Raises OSError."""
    place = _place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    kept = [
        Kept(one.name, one.id, one.function, one.calls, one.taken, [Refused(*each) for each in one.refused])
        for one in regions
    ]
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f"{place.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(_File(os.path.realpath(path), kept)))
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def last_check(path: Path) -> dict[str, Kept]:
    """By the region's id."""
    try:
        found = msgspec.json.decode(_place(path).read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError):
        return {}
    return {one.id: one for one in found.regions if one.id} if found.format == FORMAT else {}


def _place(path: Path) -> Path:
    """Named as the file's recording is."""
    return cache_folder() / "recordings" / f"{sha256(os.path.realpath(path).encode()).hexdigest()[:32]}.check.json"
