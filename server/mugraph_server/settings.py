"""What the user can set, checked one by one: a wrong value keeps its default and is named in one clear sentence."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, cast

from mugraph.protocol import targets

SearchOn = Literal["save", "open", "demand"]
LogLevel = Literal["error", "warning", "info", "debug"]
Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Settings:
    """The `mugraph` section of the editor's configuration.

    engine_command: () lets the server choose an interpreter; else any command that speaks the protocol on stdio
    interpreter:    the editor's selected Python; "" when it has none
    budget_s:       seconds of search for each region
    max_kernels, max_ops: of a kernel graph, and of a block graph, of each part that is searched
    search_on:      "open" searches when a file opens and when it is saved, "save" only when it is saved
    trusted:        False until the workspace is trusted: the engine runs the user's code
    """

    enable: bool = True
    engine_command: tuple[str, ...] = ()
    interpreter: str = ""
    target: str = "auto"
    budget_s: float = 20.0
    max_kernels: int = 5
    max_ops: int = 11
    measure: bool = True
    search_on: SearchOn = "open"
    code_lens: bool = True
    inlay_hints: bool = True
    diagnostics: bool = True
    hover: bool = True
    trusted: bool = True
    theme: Theme = "light"
    log_level: LogLevel = "info"


def read(given: object, before: Settings | None = None) -> tuple[Settings, list[str]]:
    """Settings of what the editor sent, and what is wrong with it. Keys that were not sent are at their defaults;
    `before` keeps what is not configuration (theme and trust, which the editor sends with initialize)."""
    settings = Settings()
    if before is not None:
        settings = replace(settings, trusted=before.trusted, theme=before.theme)
    if given is None:
        return settings, []
    if not isinstance(given, Mapping):
        return settings, [f"the settings must be an object with keys such as 'enable', not {_kind(given)}"]
    wrong: list[str] = []
    values: dict[str, object] = {}
    for path, value in _flat(cast("Mapping[object, object]", given), ""):
        if path not in _KEYS:
            if path.split(".")[0] not in _EDITOR_ONLY:
                wrong.append(f"mugraph.{path}: there is no such setting")
            continue
        name, check = _KEYS[path]
        if value is None:
            continue  # editors send null for "not set"
        try:
            values[name] = check(value)
        except ValueError as error:
            wrong.append(f"mugraph.{path}: {error}; it is {_shown(value)}, so {_default(name)} is used")
    return replace(settings, **values), wrong  # pyright: ignore[reportArgumentType]


_EDITOR_ONLY = frozenset({"server", "trace"})
"""Sections the editor's extension keeps for itself."""


def _flat(given: Mapping[object, object], prefix: str) -> list[tuple[str, object]]:
    """Nested objects as dotted keys: {"search": {"budget": 5}} and {"search.budget": 5} mean the same."""
    found: list[tuple[str, object]] = []
    for key, value in given.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in _KEYS:
            found += _flat(cast("Mapping[object, object]", value), f"{path}.")
        else:
            found.append((path, cast(object, value)))
    return found


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _command(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError("has a quotation mark without its partner") from None
    if isinstance(value, list) and all(isinstance(part, str) for part in cast("list[object]", value)):
        return tuple(cast("list[str]", value))
    raise ValueError("must be a command line or a list of strings")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value.strip()


def _target(value: object) -> str:
    text = _text(value).lower()
    if targets.is_target(text):
        return text
    raise ValueError(f"must be {targets.NAMES}")


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value <= 86_400:
        raise ValueError("must be a number of seconds from 0.1 to 86400")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100:
        raise ValueError("must be a whole number from 1 to 100")
    return value


def _one_of(*allowed: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"must be {', '.join(allowed[:-1])} or {allowed[-1]}")
        return cast(str, value)

    return check


_KEYS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "enable": ("enable", _flag),
    "engine.command": ("engine_command", _command),
    "interpreter": ("interpreter", _text),
    "target": ("target", _target),
    "search.budget": ("budget_s", _seconds),
    "search.kernels": ("max_kernels", _count),
    "search.operators": ("max_ops", _count),
    "search.when": ("search_on", _one_of("save", "open", "demand")),
    "search.measure": ("measure", _flag),
    "views.codeLens": ("code_lens", _flag),
    "views.inlayHints": ("inlay_hints", _flag),
    "views.diagnostics": ("diagnostics", _flag),
    "views.hover": ("hover", _flag),
    "trusted": ("trusted", _flag),
    "theme": ("theme", _one_of("light", "dark")),
    "log.level": ("log_level", _one_of("error", "warning", "info", "debug")),
}

KEYS = tuple(_KEYS)


def _kind(value: object) -> str:
    kinds: dict[type, str] = {str: "a string", list: "a list", bool: "true or false"}
    return kinds.get(type(value), "a number")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _default(name: str) -> str:
    default = next(f.default for f in fields(Settings) if f.name == name)
    return "the server's own choice" if default in ((), "") else str(default)
