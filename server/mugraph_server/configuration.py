"""Settings of each workspace root, as the client has them, and the options that it sent at the start."""

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
    """The options, and the whole mapping as it was sent ({} if it is none). A wrong value counts as missing."""
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
        """Replaces all settings. The answer is a sentence for each value that is not allowed."""
        self._default, wrong = read(default, self._base)
        self._by_root = {}
        for root, given in by_root.items():
            self._by_root[root], more = read(given, self._base)
            wrong += [sentence for sentence in more if sentence not in wrong]
        return wrong

    def set(self, **changes: Any) -> None:
        """Changes `trusted` or `theme`, which are not part of the configuration."""
        self._base = replace(self._base, **changes)
        self._default = replace(self._default, **changes)
        self._by_root = {root: replace(settings, **changes) for root, settings in self._by_root.items()}
