"""What a file defines, by its syntax alone: functions and classes, and what they look like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.ir.region import Range
from mugraph.trace.syntax.nodes import Function, own_nodes
from mugraph.trace.syntax.source import Source
from mugraph.trace.syntax.tensor_arguments import is_constructor, takes_tensors

_HEAD = re.compile(r"(?:async\s+)?(?:def|class)\s+\w+")


@dataclass(frozen=True)
class Defined:
    """name: qualified, "Block.forward" or "outer.<locals>.inner". owner: the class whose body it stands in."""

    name: str
    node: Function | ast.ClassDef
    owner: ast.ClassDef | None


def definitions(tree: ast.Module, *, local: bool = False) -> Iterator[Defined]:
    """Functions and classes of a module and of its classes, under `if`, `try` and `match` too, in the text's order.

    local: also those inside functions
    """
    return _definitions(tree.body, "", None, local)


def _definitions(body: list[ast.stmt], prefix: str, owner: ast.ClassDef | None, local: bool) -> Iterator[Defined]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Defined(prefix + node.name, node, owner)
            if local:
                yield from _definitions(node.body, f"{prefix}{node.name}.<locals>.", None, local)
        elif isinstance(node, ast.ClassDef):
            yield Defined(prefix + node.name, node, owner)
            yield from _definitions(node.body, f"{prefix}{node.name}.", node, local)
        else:
            for statements in _inner(node):
                yield from _definitions(statements, prefix, owner, local)


def _inner(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statements that stand in a statement, in the text's order."""
    yield getattr(node, "body", [])
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield part.body
    yield getattr(node, "orelse", [])
    yield getattr(node, "finalbody", [])


def method_of(node: ast.ClassDef, name: str) -> Function | None:
    """The last definition of a method with this name, which is the one that the class has."""
    found = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name]
    return found[-1] if found else None


def callers_on_self(node: ast.AST, name: str) -> set[str]:
    """Names of methods of a class that call this other one on themselves."""
    found: set[str] = set()
    for function in ast.iter_child_nodes(node):
        if isinstance(function, ast.FunctionDef) and function.name != name:
            attributes = (inner for inner in ast.walk(function) if isinstance(inner, ast.Attribute))
            if any(a.attr == name and isinstance(a.value, ast.Name) and a.value.id == "self" for a in attributes):
                found.add(function.name)
    return found


def parameters_of(function: Function) -> list[ast.arg]:
    """Those with names: `*args` and `**kwargs` are none."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def is_static(function: Function) -> bool:
    """Whether the function gets no object of its class (static and class methods), or is not called at all."""
    names = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    return bool(names & {"staticmethod", "classmethod", "property"})


def is_module_class(node: ast.ClassDef) -> bool:
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
    return any(base.endswith("Module") for base in bases) and method_of(node, "forward") is not None


def is_tensor_code(function: Function) -> bool:
    """Whether a function without shapes looks like something to search: it multiplies matrices or calls torch."""
    aliases = {"torch", "F", "functional"}
    for node in own_nodes(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base: ast.expr = node.func.value
            while isinstance(base, ast.Attribute):
                base = base.value
            is_torch = isinstance(base, ast.Name) and base.id in aliases and not is_constructor(node.func)
            if is_torch and takes_tensors(function):
                return True
    return False


def name_range(source: Source, node: Function | ast.ClassDef) -> tuple[Range, str]:
    """From `def` or `class` to the end of the name."""
    line = source.lines[node.lineno - 1]
    column = node.col_offset
    text = line.encode("utf-8")[column:].decode("utf-8", errors="ignore")
    found = _HEAD.match(text)
    head = found[0] if found else text.rstrip()
    start = source.position(node.lineno, column)
    return Range(start, source.position(node.lineno, column + len(head.encode("utf-8")))), head
