"""Settings of each workspace root, as the client gave them, and what it was told at the start beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mugraph.protocol.settings import Settings, Theme

from mugraph_server.settings import read


@dataclass(frozen=True)
class Options:
    """`initializationOptions`: {"settings": {...}, "trusted": bool, "theme": "light" | "dark", "commands": [...]}.

    settings: the section `mugraph`, for clients that cannot be asked for it. trusted: False while the workspace is not
    trusted; the notification `mugraph/trust` {"trusted": true} says when it is. theme: see `mugraph/theme`
    """

    settings: object = None
    trusted: bool = True
    theme: Theme = "light"


def read_options(given: object) -> tuple[Options, Mapping[str, object]]:
    """And the mapping itself, {} for anything else. Wrong values are as if they were not there."""
    if not isinstance(given, Mapping):
        return Options(), {}
    options = cast("Mapping[str, object]", given)
    theme: Theme = "dark" if options.get("theme") == "dark" else "light"
    return Options(options.get("settings"), options.get("trusted", True) is not False, theme), options


class Configuration:
    def __init__(self) -> None:
        self._base = Settings()
        self._default = Settings()
        self._by_root: dict[Path, Settings] = {}

    @property
    def default(self) -> Settings:
        return self._default

    @property
    def by_root(self) -> dict[Path, Settings]:
        return dict(self._by_root)

    def of(self, root: Path) -> Settings:
        return self._by_root.get(root, self._default)

    def begin(self, options: Options) -> list[str]:
        self._base = Settings(trusted=options.trusted, theme=options.theme)
        return self.take(options.settings, {})

    def take(self, default: object, by_root: Mapping[Path, object]) -> list[str]:
        """New values in place of all before; sentences about the wrong ones."""
        self._default, wrong = read(default, self._base)
        self._by_root = {}
        for root, given in by_root.items():
            self._by_root[root], more = read(given, self._base)
            wrong += [sentence for sentence in more if sentence not in wrong]
        return wrong

    def set(self, **changes: Any) -> None:
        """trusted or theme, which are no configuration."""
        self._base = replace(self._base, **changes)
        self._default = replace(self._default, **changes)
        self._by_root = {root: replace(settings, **changes) for root, settings in self._by_root.items()}
