"""Classes, functions and modules of a picture, found again in the process that traces."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import cast

from mugraph.trace.picture import Function, Place


class NotFound(Exception):
    """What a picture names and is not there now. One sentence."""


@dataclass(frozen=True)
class Places:
    """traced: the path of the file that is traced, which was imported already; namespace: its names. code: of a file of
    the user's that was imported."""

    traced: str
    namespace: dict[str, object]
    code: Callable[[str], CodeType | None]

    def find(self, place: Place) -> object:
        """Raises NotFound."""
        value: object = self._module(place.module, place.file)
        if not place.name:
            return importlib.import_module(place.module)
        for number, name in enumerate(place.name.split(".")):
            try:
                value = cast(Mapping[str, object], value)[name] if number == 0 else getattr(value, name)
            except (KeyError, AttributeError):
                raise NotFound(f"{place.module} has no {place.name} now") from None
        return value

    def _module(self, module: str, file: str | None) -> dict[str, object]:
        if file == self.traced:
            return self.namespace
        if module == "__main__":
            raise NotFound(f"it is in the script {file or 'that ran'}, which would run again")
        try:
            return vars(importlib.import_module(module))
        except Exception as error:  # of the user's code, or of a library that is not here
            raise NotFound(f"{module} cannot be imported ({type(error).__name__}: {error})") from None

    def code_of(self, function: Function) -> tuple[CodeType, dict[str, object]]:
        """Of a function inside another, or a lambda, with the names of its module. Raises NotFound."""
        namespace = self._module(function.module, function.file)
        whole = self.code(function.file) if function.file is not None else _code_of(function.module)
        named = [code for code in _inside(whole) if code.co_qualname == function.name] if whole is not None else []
        at = [code for code in named if code.co_firstlineno == function.line]
        if len(at) == 1 or len(named) == 1:
            return (at or named)[0], namespace
        raise NotFound(f"{function.module} has no {function.name} in line {function.line} now")


def _code_of(module: str) -> CodeType | None:
    try:
        spec = importlib.util.find_spec(module)
        return getattr(spec.loader, "get_code")(module) if spec is not None else None  # noqa: B009
    except (ImportError, AttributeError, ValueError, SyntaxError, OSError):
        return None


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)
