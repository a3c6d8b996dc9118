"""A recorded call as the Python expression a person would write."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from mugraph.ir.calls import STORES
from mugraph.ir.region import DEVICE, Argument, Call, Ref, Symbol
from mugraph.ops.algebra.registry import canonical

# Operators with how tightly they bind (Python's table)
_BINARY: Mapping[str, tuple[str, int]] = {
    "eq": ("==", 6), "ne": ("!=", 6), "lt": ("<", 6), "le": ("<=", 6), "gt": (">", 6), "ge": (">=", 6),
    "or": ("|", 7), "xor": ("^", 8), "and": ("&", 9), "lshift": ("<<", 10), "rshift": (">>", 10),
    "add": ("+", 11), "sub": ("-", 11), "mul": ("*", 13), "truediv": ("/", 13), "div": ("/", 13),
    "floordiv": ("//", 13), "mod": ("%", 13), "matmul": ("@", 13), "pow": ("**", 15),
}  # fmt: skip
_SIGN = 12
"""Below products: `(-x) * y` says what it does."""
_ATOM = 20
_BY_NODE: Mapping[type[ast.AST], int] = {
    ast.Name: _ATOM, ast.Attribute: _ATOM, ast.Call: _ATOM, ast.Subscript: _ATOM, ast.Constant: _ATOM,
    ast.Tuple: _ATOM, ast.UnaryOp: _SIGN, ast.Add: 11, ast.Sub: 11, ast.Mult: 13, ast.Div: 13, ast.FloorDiv: 13,
    ast.Mod: 13, ast.MatMult: 13, ast.Pow: 15, ast.LShift: 10, ast.RShift: 10, ast.BitAnd: 9, ast.BitXor: 8,
    ast.BitOr: 7,
}  # fmt: skip
_UNARY: Mapping[str, str] = {"neg": "-", "pos": "+", "invert": "~"}
_PLAIN_METHODS: Mapping[str, str] = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "true_divide": "div", "matmul": "matmul",
}  # fmt: skip
_FUNCTIONAL = "torch.nn.functional."


class NotReplayable(Exception):
    """A call names something PyTorch does not have, or works on a value nobody computed; one sentence says which."""


def call_text(call: Call, names: Mapping[int, str]) -> str:
    """The expression; of a call that stores an item, the statement. With values called by `names`:
    "torch.cat((a, b), dim=-1)", "x.view(2, 8, 64)", "q * cos", "x.T".

    torch.nn.functional goes by the name `F`.

    names: value number -> name or expression, put in parentheses where it has to be; the first is a tensor that is
    there from the start: its device is the region's. Raises NotReplayable for a target that has no spelling.
    """
    target = canonical(call.target)
    root, _, path = target.partition(".")
    if target.startswith(_FUNCTIONAL):
        return f"F.{target.removeprefix(_FUNCTIONAL)}({_arguments(*_said(call), names)})"
    if root == "torch" and path:
        return f"{target}({_arguments(call.args, call.kwargs, names)})"
    if root != "Tensor" or not path:
        raise NotReplayable(f"{call.target} has no spelling")
    return _method(path, call, names)


def _said(call: Call) -> tuple[Sequence[Argument], Mapping[str, Argument]]:
    """The arguments as a person writes them. Modules also pass some that say nothing: a last one that is None, and
    flags that ask for nothing."""
    args = list(call.args)
    while args and args[-1] is None and not call.kwargs:
        args.pop()
    idle = {"_stacklevel"} | ({"inplace"} if call.kwargs.get("inplace") is False else set[str]())
    return args, {name: value for name, value in call.kwargs.items() if name not in idle}


def _method(name: str, call: Call, names: Mapping[int, str]) -> str:
    if not call.args:
        raise NotReplayable(f"{call.target} has no self")
    own = _operand(call.args[0], names, _ATOM)
    rest = call.args[1:]
    if name.endswith(".__get__"):
        return f"{own}.{name.removesuffix('.__get__')}"
    if name == "__getitem__":
        return f"{own}[{_index(rest[0], names)}]"
    if call.target == STORES:
        return f"{own}[{_index(rest[0], names)}] = {_argument(rest[1], names)}"
    if name.startswith("__") and name.endswith("__"):
        return _operator(name[2:-2], call, names)
    if name == "neg" and not rest and not call.kwargs:
        return _operator("neg", call, names)
    if name in _PLAIN_METHODS and len(rest) == 1 and not call.kwargs and _scalar_or_tensor(call.args):
        return _operator(_PLAIN_METHODS[name], call, names)
    return f"{own}.{name}({_arguments(rest, call.kwargs, names)})"


def _scalar_or_tensor(args: Sequence[Argument]) -> bool:
    return all(isinstance(argument, (Ref, int, float)) for argument in args)


def _operator(name: str, call: Call, names: Mapping[int, str]) -> str:
    if name in _UNARY and len(call.args) == 1:
        return f"{_UNARY[name]}{_operand(call.args[0], names, _ATOM)}"
    if len(call.args) == 2 and not call.kwargs:
        left, right = call.args
        if name in _BINARY:
            return _infix(name, left, right, names)
        if name.startswith("r") and name[1:] in _BINARY:
            return _infix(name[1:], right, left, names)
    own = _operand(call.args[0], names, _ATOM)
    return f"{own}.__{name}__({_arguments(call.args[1:], call.kwargs, names)})"


def _infix(name: str, left: Argument, right: Argument, names: Mapping[int, str]) -> str:
    """Operators group from the left, but for the power; comparisons must not be chained."""
    symbol, tightness = _BINARY[name]
    alone = name == "pow" or tightness == 6
    first = _operand(left, names, tightness + 1 if alone else tightness)
    return f"{first} {symbol} {_operand(right, names, tightness + 1)}"


def _operand(argument: Argument, names: Mapping[int, str], tightness: int) -> str:
    """In parentheses where it binds less tightly than its place asks."""
    text = _argument(argument, names)
    return text if _tightness(text) >= tightness else f"({text})"


def _tightness(text: str) -> int:
    if text.isidentifier():
        return _ATOM
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return _SIGN + 7  # `2.real` is no attribute
    return _BY_NODE.get(type(node.op if isinstance(node, ast.BinOp) else node), 0)


def _index(argument: Argument, names: Mapping[int, str]) -> str:
    if isinstance(argument, tuple):
        inner = ", ".join(_slice(item, names) for item in argument)
        return f"{inner}," if len(argument) == 1 else inner or "()"
    return _slice(argument, names)


def _slice(argument: Argument, names: Mapping[int, str]) -> str:
    if not isinstance(argument, slice):
        return _argument(argument, names)
    bounds: tuple[Argument, Argument, Argument] = (argument.start, argument.stop, argument.step)
    start, stop, step = ("" if bound is None else _argument(bound, names) for bound in bounds)
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def _arguments(args: Sequence[Argument], kwargs: Mapping[str, Argument], names: Mapping[int, str]) -> str:
    positional = [_argument(argument, names) for argument in args]
    return ", ".join([*positional, *(f"{name}={_argument(value, names)}" for name, value in kwargs.items())])


def _argument(argument: Argument, names: Mapping[int, str]) -> str:
    if isinstance(argument, Ref):
        return names[argument.value]
    if isinstance(argument, Symbol):
        if argument == DEVICE:
            return f"{_operand(Ref(next(iter(names))), names, _ATOM)}.device"
        return "..." if argument.name == "Ellipsis" else argument.name
    if isinstance(argument, tuple):
        inner = ", ".join(_argument(item, names) for item in argument)
        return f"({inner},)" if len(argument) == 1 else f"({inner})"
    if isinstance(argument, float) and (argument != argument or argument in (float("inf"), float("-inf"))):
        return f'float("{argument}")'
    if isinstance(argument, slice):
        bounds: tuple[Argument, Argument, Argument] = (argument.start, argument.stop, argument.step)
        return f"slice({', '.join(_argument(bound, names) for bound in bounds)})"
    return repr(argument)
