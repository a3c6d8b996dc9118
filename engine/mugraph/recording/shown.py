"""What a recorded call shows of the tensors that an expression of the function reads: `x`, `self.norm.weight`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from mugraph.recording.memory import Seen
from mugraph.trace.picture import Items, Node, Object, Pairs, Picture, Reference, Tensor, Value
from mugraph.trace.syntax.shapes import DTYPES, BadShapes, TensorSpec, parse_spec

MANY = "another number from call to call"
"""What is said of a whole number of which a recording does not keep all values."""
_HELD = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True)
class ShownTensor:
    """strides: None where they are not known."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    wants_gradient: bool


def shown(seen: Seen, expression: str, self_name: str | None) -> ShownTensor | None:
    """None where the recording does not say. self_name: what the function calls the object that it is a method of."""
    call = seen.call
    if expression in call.arguments:
        return _argument(seen, expression)
    try:
        node = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    picture = seen.picture()
    if picture is None:
        return None
    found = _at(node, picture, self_name, seen.is_its_own)
    if not isinstance(found, Tensor):
        return None
    dtype = DTYPES.get(found.dtype, found.dtype)
    return ShownTensor(dtype, found.shape, found.strides, call.gradients and found.needs_grad)


def _argument(seen: Seen, name: str) -> ShownTensor | None:
    call = seen.call
    try:
        spec = parse_spec(call.arguments[name])
    except BadShapes:
        return None
    if not isinstance(spec, TensorSpec):
        return None
    shape = tuple(spec.shape)
    strides: tuple[int, ...] | None = None
    if call.strides is not None:
        strides = tuple(call.strides[name]) if name in call.strides else contiguous(shape)
    return ShownTensor(spec.dtype, shape, strides, name in call.wanted_of)


def argument(seen: Seen, name: str) -> str | None:
    """A recorded argument as Python writes it ("None", "2"), "a tensor", MANY, or None where the recording does not
    say."""
    if name in seen.call.numbers:
        number = seen.call.numbers[name]
        return MANY if number is None else repr(number)
    picture = seen.picture() if seen.is_its_own else None
    if picture is not None and name in picture.arguments:
        found = _node(picture.arguments[name], picture)
        if isinstance(found, Tensor):
            return "a tensor"
        return repr(found) if found is None or isinstance(found, bool | int | float | str) else None
    text = seen.call.arguments.get(name)
    if text is None:
        return None
    try:
        return "a tensor" if isinstance(parse_spec(text), TensorSpec) else text
    except BadShapes:
        return None


def trains(seen: Seen, expression: str, dtype: str, shape: tuple[int, ...]) -> bool:
    """Whether a gradient is wanted of a parameter that is read from an object nobody has the path of, as of `block` in
    `for block in self.blocks`: all that it can be want one."""
    name = expression.rpartition(".")[2]
    picture = seen.picture() if seen.call.gradients and name.isidentifier() and "." in expression else None
    if picture is None:
        return False
    states = [node.state for node in picture.nodes if isinstance(node, Object)]
    found = [one for state in states if isinstance(one := _of_pairs(state, "_parameters", name, picture), Tensor)]
    alike = [one for one in found if (DTYPES.get(one.dtype), one.shape) == (dtype, shape)]
    return bool(alike) and all(one.needs_grad for one in alike)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _at(node: ast.expr, picture: Picture, self_name: str | None, whole: bool) -> Node | Value:
    """What a name followed by attributes and subscripts is in the picture. whole: of this call; else only its object
    counts."""
    match node:
        case ast.Name(name) if name == self_name:
            return _node(picture.owner, picture)
        case ast.Name(name) if whole:
            return _node(picture.arguments.get(name), picture)
        case ast.Attribute(owner, name):
            return _part(_at(owner, picture, self_name, whole), name, picture)
        case ast.Subscript(owner, ast.Constant(int() | str() as key)):
            found = _at(owner, picture, self_name, whole)
            return _row(found) if isinstance(found, Tensor) else _item(found, key, picture)
        case ast.Subscript(owner, ast.Name() | ast.Attribute() | ast.BinOp() | ast.UnaryOp()):
            found = _at(owner, picture, self_name, whole)
            return _row(found) if isinstance(found, Tensor) else None
        case _:
            return None


def _node(value: Value, picture: Picture) -> Node | Value:
    return picture.nodes[value.at] if isinstance(value, Reference) and 0 <= value.at < len(picture.nodes) else value


def _part(owner: Node | Value, name: str, picture: Picture) -> Node | Value:
    if not isinstance(owner, Object):
        return None
    if name in owner.state:
        return _node(owner.state[name], picture)
    return next((found for kind in _HELD if (found := _of_pairs(owner.state, kind, name, picture)) is not None), None)


def _row(tensor: Tensor) -> Tensor | None:
    """At a number. All rows have the same shape and strides."""
    return replace(tensor, shape=tensor.shape[1:], strides=tensor.strides[1:]) if tensor.shape else None


def _item(owner: Node | Value, key: int | str, picture: Picture) -> Node | Value:
    match owner:
        case Items(items=items) if isinstance(key, int) and -len(items) <= key < len(items):
            return _node(items[key], picture)
        case Pairs(items=pairs):
            return next((_node(one, picture) for name, one in pairs if name == key), None)
        case Object(state=state):  # a ModuleList, a ParameterDict
            return next((found for kind in _HELD if (found := _of_pairs(state, kind, str(key), picture))), None)
        case _:
            return None


def _of_pairs(state: Mapping[str, Value], kind: str, name: str, picture: Picture) -> Node | Value:
    pairs = _node(state.get(kind), picture)
    return _item(pairs, name, picture) if isinstance(pairs, Pairs) else None
