"""Which arguments of a function are tensors, as its text tells: annotations, defaults, and what is done with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mugraph.trace.syntax.nodes import Function, own_nodes

_WORDS = re.compile(r"[A-Za-z_]\w*")
_TENSORS = frozenset({
    "Tensor", "Parameter", "Float16", "BFloat16", "Float32", "Float", "Float64", "Int64", "Int", "Integer", "Int32",
    "Int16", "Int8", "UInt8", "Bool", "Inexact", "Num", "Real", "Shaped",
})  # fmt: skip
"""Words of annotations: torch's classes, and jaxtyping's."""
_HOLDERS = frozenset({
    "dict", "Dict", "list", "List", "tuple", "Tuple", "set", "Sequence", "Mapping", "Iterable", "Iterator", "Callable",
})  # fmt: skip
_UNTYPED = frozenset({"Any", "object"})
_OF_TENSORS = frozenset({
    "T", "mT", "shape", "size", "dim", "ndim", "dtype", "device", "view", "reshape", "transpose", "permute", "flatten",
    "unflatten", "unsqueeze", "squeeze", "expand", "repeat", "contiguous", "chunk", "split", "unbind", "float", "half",
    "bfloat16", "to", "type_as", "new_zeros", "sum", "mean", "max", "min", "pow", "exp", "sqrt", "rsqrt", "softmax",
    "matmul", "sigmoid", "tanh", "relu", "masked_fill", "roll", "detach", "clone", "numel",
})  # fmt: skip
"""Attributes and methods by which a tensor is known."""
_MODULES = frozenset({"torch", "F", "functional"})
_SPACES = frozenset({"torch", "nn"})
_FILES = frozenset({"open", "os", "Path"})
_NO_TENSORS = frozenset({"int", "float", "str", "bool", "None", "Path", "torch.device", "torch.dtype"})
_NUMBERS = frozenset({"range", "int", "bool", "str"})
_SIZES = frozenset({
    "view", "reshape", "expand", "repeat", "unflatten", "size", "transpose", "permute", "chunk", "split", "unsqueeze",
    "squeeze", "flatten",
})  # fmt: skip
"""Methods of tensors that take numbers only."""


def tensor_arguments(function: Function) -> list[str]:
    """Names of the arguments that are to be described as tensors. One that nothing is known of counts as a tensor if it
    has to be given."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = [*zip(positional, [*without, *arguments.defaults], strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [one.arg for one, default in pairs if one.arg not in ("self", "cls") and _is_tensor(function, one, default)]


def shapes_hint(function: Function) -> str:
    """How the shapes of a function that none are known of can be said."""
    run = "run your program once with: mugraph record -- python PROGRAM"
    example = ", ".join(f"{name}=f16[...]" for name in tensor_arguments(function))
    if not example:
        return f"no shapes are known; {run}"
    return f"no shapes are known; describe the tensors in a comment above, like “# mugraph: {example}”, or {run}"


def _is_tensor(function: Function, argument: ast.arg, default: ast.expr | None) -> bool:
    words = set(_WORDS.findall(ast.unparse(argument.annotation))) if argument.annotation is not None else set[str]()
    if words - _UNTYPED:
        return bool(words & _TENSORS) and not words & _HOLDERS and default is None
    return default is None and _may_be(function, argument)  # else it may be left out


def takes_tensors(function: Function) -> bool:
    """Whether an argument may be a tensor. Functions that build inputs or layers, and scripts, call torch as well."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return any(_may_be(function, one) for one in arguments if one.arg not in ("self", "cls"))


def _may_be(function: Function, argument: ast.arg) -> bool:
    if argument.annotation is not None and ast.unparse(argument.annotation) in _NO_TENSORS:
        return False
    uses = set(_uses(function, argument.arg))
    return True in uses or False not in uses


def is_constructor(called: ast.expr) -> bool:
    """Whether a call makes a layer (`torch.nn.Linear`), which takes numbers."""
    match called:
        case ast.Attribute(_, name):
            return _root(called) in _SPACES and name[:1].isupper() and name not in _TENSORS
        case _:
            return False


def _uses(function: Function, name: str) -> Iterator[bool]:
    """For each use of the argument that tells: whether it is a tensor's."""
    for node in own_nodes(function):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                yield from (True for side in (left, right) if _is(side, name))
            case ast.Attribute(value, attribute) if _is(value, name):
                yield attribute in _OF_TENSORS
            case ast.Call(called, given, keywords):
                if _is(called, name):
                    yield False
                elif is_constructor(called) or (_root(called) in _FILES):
                    yield from (False for one in (*given, *(each.value for each in keywords)) if _is(one, name))
                elif _root(called) in _MODULES or _root(called) == "self":
                    yield from (True for one in given[:1] if _is(one, name))
                elif _takes_numbers(called):
                    yield from (False for one in given if _is(one, name))
                yield from (False for one in keywords if one.arg in ("dim", "eps", "p") and _is(one.value, name))
            case ast.If(test) | ast.IfExp(test) if _is(test, name) or _is(getattr(test, "operand", None), name):
                yield False
            case ast.Compare(left, _, [other, *_]) if _is(left, name) and _is_of_words(other):
                yield False
            case _:
                pass


def _is_of_words(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value):
            return isinstance(value, str)
        case ast.Set(parts) | ast.Tuple(parts) | ast.List(parts):
            return bool(parts) and all(map(_is_of_words, parts))
        case _:
            return False


def _takes_numbers(called: ast.expr) -> bool:
    match called:
        case ast.Name(name):
            return name in _NUMBERS
        case ast.Attribute(_, method):
            return method in _SIZES
        case _:
            return False


def _is(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
