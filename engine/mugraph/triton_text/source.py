"""A module of kernels and launchers as text: its functions, its constants and what its imports are called."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    """imports: name here -> full name. constants: name -> expression it is assigned, the last one. doubtful: names of
    which the text alone does not say what they are, and why"""

    functions: dict[str, Function]
    imports: dict[str, str]
    constants: dict[str, ast.expr]
    doubtful: dict[str, str] = field(default_factory=dict[str, str])
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])

    @property
    def names(self) -> set[str]:
        return {*self.functions, *self.imports, *self.constants, *self.doubtful, *self.classes}

    def take(self, name: str, other: Module) -> None:
        """The name means what it means there, and nothing else."""
        for mine, theirs in (
            (self.functions, other.functions),
            (self.imports, other.imports),
            (self.constants, other.constants),
            (self.doubtful, other.doubtful),
            (self.classes, other.classes),
        ):
            cast("dict[str, Any]", mine).pop(name, None)
            if name in theirs:
                cast("dict[str, Any]", mine)[name] = cast("dict[str, Any]", theirs)[name]

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
    """Raises Unreadable for text that is no Python, or that may change what names mean while it is imported."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Unreadable(f"the text is no Python: {error}") from None
    module = Module({}, {}, {})
    _read(tree.body, module, module)
    return module


def _read(body: list[ast.stmt], module: Module, home: Module) -> None:
    """module: that names are written to; home: that functions belong to"""
    for statement in body:
        match statement:
            case ast.Import(names):
                for alias in names:
                    first = alias.name.split(".")[0]
                    found = Module({}, {alias.asname or first: named(alias.name if alias.asname else first).name}, {})
                    module.take(alias.asname or first, found)
            case ast.ImportFrom(source, names):
                for alias in names:
                    name = alias.asname or alias.name
                    module.take(name, Module({}, {name: named(f"{source or ''}.{alias.name}").name}, {}))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                refuse_effects(statement.decorator_list, home)
                if isinstance(statement, ast.FunctionDef):
                    module.take(name, Module({name: Function(statement, home, {})}, {}, {}))
                else:
                    module.take(name, Module({}, {}, {}, {name: "is a coroutine"}))
            case ast.ClassDef(name=name):
                module.take(name, _class(statement, home))
            case ast.Assign([ast.Name(id=name)], ast.Call(decorator, [ast.Name(id=own)], [])) if (
                name == own and name in module.functions
            ):  # name = triton.jit(name)
                refuse_effects([decorator], home)
                old = module.functions[name].node
                assert isinstance(old, ast.FunctionDef)
                node = ast.FunctionDef(old.name, old.args, old.body, [decorator, *old.decorator_list], old.returns)
                module.take(name, Module({name: Function(ast.copy_location(node, old), home, {})}, {}, {}))
            case ast.Assign(targets, value) if all(isinstance(one, ast.Name) for one in targets):
                refuse_effects([value], home)
                for target in targets:
                    assert isinstance(target, ast.Name)
                    module.take(target.id, Module({}, {}, {target.id: value}))
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if value is not None:
                    refuse_effects([value], home)
                    module.take(name, Module({}, {}, {name: value}))
            case ast.If(test=test, body=first, orelse=second):
                if not _is_main(test):
                    refuse_effects([test], home)
                    _read_one_of([first, second], module, home)
            case ast.Try(body=first, handlers=handlers, orelse=rest, finalbody=last):
                _read_one_of([first, *(handler.body for handler in handlers)], module, home)
                _read([*rest, *last], module, home)
            case ast.Expr(value):
                refuse_effects([value], home)
            case ast.Pass() | ast.Assert() | ast.Raise():
                pass
            case _:
                said = ast.unparse(statement).splitlines()[0]
                raise Unreadable(f"{said} outside of functions may change what the text means", statement.lineno)


def _class(node: ast.ClassDef, home: Module) -> Module:
    bases = [home.full_name(base) for base in node.bases]
    if bases != ["torch.autograd.Function"] or node.keywords:
        return Module({}, {}, {}, {node.name: "is a class"})
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef):
            refuse_effects(inner.decorator_list, home)
    return Module({}, {}, {}, {}, {node.name: node})


def _is_main(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "TYPE_CHECKING", "typing.TYPE_CHECKING")


def _read_one_of(bodies: list[list[ast.stmt]], module: Module, home: Module) -> None:
    """One of several bodies is run, it is not known which: what they say differently is doubtful. Functions of other
    modules are taken to be those that are named first."""
    read: list[Module] = []
    for body in bodies:
        found = Module({}, {}, {})
        _read(body, found, home)
        read.append(found)
    for name in dict.fromkeys(name for found in read for name in found.names):
        having = [found for found in read if name in found.names]
        imported = all(name in found.imports for found in having) and name not in module.functions
        same = len(having) == len(read) and len({_said(name, found) for found in having}) == 1
        if imported or same:
            module.take(name, having[0])
        else:
            module.take(name, Module({}, {}, {}, {name: "is defined in several ways, under conditions"}))


def _said(name: str, found: Module) -> str:
    if name in found.functions:
        return ast.dump(found.functions[name].node)
    if name in found.classes:
        return ast.dump(found.classes[name])
    return ast.dump(found.constants[name]) if name in found.constants else found.imports.get(name, "")


_CALLED = ("triton.", "tl.", "torch.", "math.", "os.", "logging.", "warnings.", "functools.", "platform.", "sys.")
"""Modules whose functions may be called while a text is imported."""
_NEVER = ("torch.set_", "torch.library", "torch.utils.", "os.system", "sys.set")
_HARMLESS = frozenset({
    "range", "min", "max", "len", "int", "float", "bool", "abs", "sum", "tuple", "list", "dict", "zip", "enumerate",
    "print", "str", "pow", "isinstance", "hasattr", "getattr", "type", "sorted", "set", "frozenset",
})  # fmt: skip


def refuse_effects(expressions: Iterable[ast.expr], module: Module) -> None:
    """What runs while the text is imported may not replace what the text calls by name."""
    for expression in expressions:
        for node in _run_at_once(expression):
            if not isinstance(node, ast.Call):
                continue
            name = module.full_name(node.func)
            inner = module.full_name(node.func.func) if isinstance(node.func, ast.Call) else name
            known = inner.startswith(_CALLED) and not inner.startswith(_NEVER)
            if not known and name not in _HARMLESS and not _of_text(node.func):
                raise Unreadable(
                    f"{ast.unparse(node.func)}(...) outside of functions may change what the text means", node.lineno
                )


def _of_text(function: ast.expr) -> bool:
    """A method of a text, such as "abc".split, or of what a known call gives, such as os.environ.get(...).lower."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Constant | ast.JoinedStr) or (
            isinstance(function.value, ast.Call) and function.attr in ("lower", "upper", "split", "strip")
        )
    return False


def _run_at_once(expression: ast.expr) -> Iterator[ast.AST]:
    """Without the bodies of lambdas."""
    yield expression
    if not isinstance(expression, ast.Lambda):
        for child in ast.iter_child_nodes(expression):
            if isinstance(child, ast.expr):
                yield from _run_at_once(child)
            elif isinstance(child, ast.keyword):
                yield from _run_at_once(child.value)
            elif isinstance(child, ast.comprehension):
                for one in (child.iter, *child.ifs):
                    yield from _run_at_once(one)
