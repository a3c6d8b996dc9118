"""Names of a function that are sizes of tensors: `b` and `t` of `b, t, _ = x.shape`."""

from __future__ import annotations

import ast
from collections import Counter

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_sizes(function: _Function) -> frozenset[str]:
    """The names that are bound once, to a size or to what is computed of sizes alone."""
    bound = Counter(_bound(function))
    found: set[str] = set()
    for node in _own(function):  # in the order of the text: what is computed of sizes comes after them
        match node:
            case ast.Assign([ast.Tuple(targets)], value) if _is_shape(value):
                found |= {one.id for one in targets if isinstance(one, ast.Name) and bound[one.id] == 1}
            case ast.Assign([ast.Name(name)], value) if bound[name] == 1 and _is_size(value, found):
                found.add(name)
            case _:
                pass
    return frozenset(found)


def _is_shape(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(_, "shape") | ast.Call(ast.Attribute(_, "size"), [], []):
            return True
        case ast.Subscript(owner, ast.Slice()):
            return _is_shape(owner)
        case _:
            return False


def _is_size(node: ast.expr, sizes: set[str]) -> bool:
    match node:
        case ast.Subscript(owner, index) if not isinstance(index, ast.Slice):
            return _is_shape(owner)
        case ast.Call(ast.Attribute(_, "size"), [_], []):
            return True
        case ast.Name(name):
            return name in sizes
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right):
            sides = [left, right]
            some = [one for one in sides if _is_size(one, sizes)]
            return bool(some) and all(one in some or _is_number(one) for one in sides)
        case _:
            return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _own(function: _Function) -> list[ast.AST]:
    """What is in it, functions and classes in it apart, in the order of the text."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            found.append(child)
            if not isinstance(child, _Function | ast.Lambda | ast.ClassDef):
                visit(child)

    visit(function)
    return found


def _bound(function: _Function) -> list[str]:
    """A name for each time that it is bound, anywhere in the function."""
    found: list[str] = []
    for node in ast.walk(function):
        match node:
            case ast.Name(name, ast.Store() | ast.Del()):
                found.append(name)
            case ast.arg(name) | ast.ExceptHandler(name=str(name)) | ast.alias(name=name):
                found.append(name)
            case ast.Global(names) | ast.Nonlocal(names):
                found += names * 2
            case _:
                pass
    return found
