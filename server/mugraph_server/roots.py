"""The workspace's folders. An engine works from one of them, and settings may differ from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Roots:
    def __init__(self) -> None:
        self._folders: tuple[Path, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    def set(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(dict.fromkeys(folders))

    def first(self) -> Path:
        return self._folders[0] if self._folders else Path.cwd()

    def of(self, path: str) -> Path:
        """The innermost root around the file. For a library's file that was opened it is the first root; without roots,
        the file's own folder."""
        around = [root for root in self._folders if Path(path).is_relative_to(root)]
        if around:
            return max(around, key=lambda root: len(root.parts))
        return self._folders[0] if self._folders else Path(path).parent
