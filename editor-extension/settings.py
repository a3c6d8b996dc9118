"""Writes what package.json and the README say of the settings, as mugraph.protocol.settings declares them.

    python editor-extension/settings.py [--check]

--check writes nothing, and fails where something else stands there.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mugraph.protocol.setting_kinds import OneOf
from mugraph.protocol.settings import Declared, ExtensionSettings, Settings, by_key

FOLDER = Path(__file__).parent


def shown() -> list[Declared]:
    """What a person can set in the editor, in the order it is shown in."""
    every = [*by_key(Settings).values(), *by_key(ExtensionSettings).values()]
    return sorted((one for one in every if one.setting.scope is not None), key=lambda one: one.setting.order)


def configuration() -> Mapping[str, object]:
    """`contributes.configuration`."""
    return {"title": "mugraph", "properties": {f"mugraph.{one.setting.key}": _schema(one) for one in shown()}}


def restricted() -> list[str]:
    """`capabilities.untrustedWorkspaces.restrictedConfigurations`."""
    return [f"mugraph.{one.setting.key}" for one in shown() if one.setting.restricted]


def table() -> str:
    """Of the README."""
    rows = [f"| `mugraph.{one.setting.key}` | {_default(one)} | {one.setting.says}{_allowed(one)} |" for one in shown()]
    return "\n".join(["| setting | default | meaning |", "| --- | --- | --- |", *rows])


def _schema(one: Declared) -> Mapping[str, object]:
    default = one.default or "" if isinstance(one.default, tuple) else one.default
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    setting = one.setting
    rest = {"scope": setting.scope, "order": setting.order, "markdownDescription": setting.says}
    return {**setting.values.schema, "default": default, **rest}


def _default(one: Declared) -> str:
    default: Any = _schema(one)["default"]
    return "empty" if default == "" else f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _allowed(one: Declared) -> str:
    values = one.setting.values
    return f" One of {', '.join(f'`{value}`' for value in values.allowed)}." if isinstance(values, OneOf) else ""


def _with_json(text: str, key: str, value: object) -> str:
    """The text of a JSON file, with the value of the only key of that name in place of what stands there."""
    found = re.search(rf'^( *)"{key}": ', text, re.MULTILINE)
    assert found is not None, f"there is no {key}"
    _, end = json.JSONDecoder().raw_decode(text, found.end())
    lines = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{found[1]}")
    return text[: found.end()] + lines + text[end:]


def package(text: str) -> str:
    return _with_json(_with_json(text, "configuration", configuration()), "restrictedConfigurations", restricted())


def readme(text: str) -> str:
    return re.sub(r"(?<=\n)\| setting \|.*\n(\|.*\n)*", lambda _: f"{table()}\n", text, count=1)


def main(arguments: list[str]) -> int:
    wrong = 0
    for name, written in (("package.json", package), ("README.md", readme)):
        path = FOLDER / name
        text = path.read_text("utf-8")
        if written(text) == text:
            continue
        if "--check" in arguments:
            print(f"{path.name} does not say what the settings' declarations do: run `make settings`", file=sys.stderr)
            wrong += 1
        else:
            path.write_text(written(text), "utf-8")
            print(f"{path.name} is written")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
