"""The editor's configuration, read value by value: a wrong one keeps its default and is named in one clear sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

from mugraph.protocol.settings import Declared, EngineSettings, ExtensionSettings, Settings, by_key, declared

_KNOWN = by_key(Settings)
KEYS = tuple(_KNOWN)
_EXTENSIONS_OWN = frozenset(key.split(".")[0] for key in by_key(ExtensionSettings))


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
    values: dict[str, Any] = {}
    for path, value in _flat(cast("Mapping[object, object]", given), ""):
        if path not in _KNOWN:
            if path.split(".")[0] not in _EXTENSIONS_OWN:
                wrong.append(f"mugraph.{path}: there is no such setting")
            continue
        if value is None:
            continue  # editors send null for "not set"
        known = _KNOWN[path]
        try:
            values[known.name] = known.setting.values.read(value)
        except ValueError as error:
            wrong.append(f"mugraph.{path}: {error}; it is {_shown(value)}, so {_default(known)} is used")
    return replace(settings, **values), wrong


def to_engine(settings: Settings) -> EngineSettings:
    return EngineSettings(**{one.name: getattr(settings, one.name) for one in fields(EngineSettings)})


def looked_at_again(settings: Settings) -> tuple[object, ...]:
    """The settings whose change has open files analysed again."""
    found: list[object] = []
    for one in declared(Settings):
        value, again = getattr(settings, one.name), one.setting.again
        if again:
            found.append(value if again is True else value == again)
    return tuple(found)


def _flat(given: Mapping[object, object], prefix: str) -> list[tuple[str, object]]:
    """Nested objects as dotted keys: {"search": {"budget": 5}} and {"search.budget": 5} mean the same."""
    found: list[tuple[str, object]] = []
    for key, value in given.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in _KNOWN:
            found += _flat(cast("Mapping[object, object]", value), f"{path}.")
        else:
            found.append((path, cast(object, value)))
    return found


def _kind(value: object) -> str:
    kinds: dict[type, str] = {str: "a string", list: "a list", bool: "true or false"}
    return kinds.get(type(value), "a number")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _default(known: Declared) -> str:
    return "the server's own choice" if known.default in ((), "") else str(known.default)
