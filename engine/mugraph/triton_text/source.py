"""A module of kernels and launchers as text: its functions, its constants and what its imports are called."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from mugraph.triton_text.refusals import Unreadable

_SHORT = {"triton.language": "tl", "triton.language.math": "tl", "tl.math": "tl"}
_LIBDEVICE = "libdevice"


@dataclass(frozen=True)
class Named:
    """Something of another module, by its full name: `tl.load`, `torch.empty`."""

    name: str

    def of(self, attribute: str) -> Named:
        return named(f"{self.name}.{attribute}")


@dataclass(frozen=True, eq=False)
class Function:
    """decorators: as expressions, the outermost first"""

    node: ast.FunctionDef | ast.Lambda
    module: Module
    closure: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "a lambda"

    @property
    def decorators(self) -> list[tuple[str, ast.expr]]:
        """Their full names, and the expressions."""
        found: list[tuple[str, ast.expr]] = []
        for one in self.node.decorator_list if isinstance(self.node, ast.FunctionDef) else ():
            called = one.func if isinstance(one, ast.Call) else one
            found.append((self.module.full_name(called), one))
        return found

    @property
    def is_jit(self) -> bool:
        return any(name in ("triton.jit", "triton.runtime.jit.jit") for name, _ in self.decorators)


@dataclass(eq=False)
class Module:
    """imports: name here -> full name. constants: name -> expression it is assigned, the last one"""

    functions: dict[str, Function]
    imports: dict[str, str]
    constants: dict[str, ast.expr]

    def full_name(self, expression: ast.expr) -> str:
        """Of a dotted name; "" for what is none."""
        if isinstance(expression, ast.Name):
            return self.imports.get(expression.id, expression.id)
        if isinstance(expression, ast.Attribute):
            owner = self.full_name(expression.value)
            return named(f"{owner}.{expression.attr}").name if owner else ""
        return ""


def is_sequence(value: Any) -> bool:
    return isinstance(value, tuple | list)


def listed(value: Any) -> tuple[Any, ...]:
    """The elements of a tuple or a list; anything else alone."""
    return tuple(cast("Iterable[Any]", value)) if is_sequence(value) else (value,)


def named(name: str) -> Named:
    for long, short in _SHORT.items():
        if name == long or name.startswith(f"{long}."):
            name = short + name[len(long) :]
    if f"{_LIBDEVICE}." in name:
        name = f"libdevice.{name.split(f'{_LIBDEVICE}.', 1)[1]}"
    return Named(name)


@lru_cache(maxsize=64)
def read_module(text: str) -> Module:
    """Raises Unreadable for text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Unreadable(f"the text is no Python: {error}") from None
    module = Module({}, {}, {})
    _read(tree.body, module)
    return module


def _read(body: list[ast.stmt], module: Module) -> None:
    for statement in body:
        match statement:
            case ast.Import(names):
                for alias in names:
                    first = alias.name.split(".")[0]
                    module.imports[alias.asname or first] = named(alias.name if alias.asname else first).name
            case ast.ImportFrom(source, names):
                for alias in names:
                    module.imports[alias.asname or alias.name] = named(f"{source or ''}.{alias.name}").name
            case ast.FunctionDef(name=name):
                module.functions[name] = Function(statement, module, {})
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                module.constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                module.constants[name] = value
            case ast.If(body=first, orelse=second):
                _read(second, module)
                _read(first, module)
            case ast.Try(body=first):
                _read(first, module)
            case _:
                pass
