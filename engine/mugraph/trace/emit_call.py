"""A recorded call as the Python expression a person would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ops.registry import canonical
from mugraph.trace.region import Argument, Call, Ref, Symbol

# Operators with how tightly they bind (Python's table); left-associative but for the power.
_BINARY: Mapping[str, str] = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "matmul": "@",
    "pow": "**", "and": "&", "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_UNARY: Mapping[str, str] = {"neg": "-", "pos": "+", "invert": "~"}
_PLAIN_METHODS: Mapping[str, str] = {"add": "+", "sub": "-", "mul": "*", "div": "/", "true_divide": "/", "matmul": "@"}


class NotReplayable(Exception):
    """A call names something PyTorch does not have, or works on a value nobody computed; one sentence says which."""


def call_text(call: Call, names: Mapping[int, str]) -> str:
    """The expression, with values called by `names`: "torch.cat((a, b), dim=-1)", "x.view(2, 8, 64)", "q * cos", "x.T".

    names: value number -> name or expression; one that is no plain name or attribute path is put in parentheses where
    it has to be. Raises NotReplayable for a target that has no spelling.
    """
    target = canonical(call.target)
    root, _, path = target.partition(".")
    if root == "torch" and path:
        return f"{target}({_arguments(call.args, call.kwargs, names)})"
    if root != "Tensor" or not path:
        raise NotReplayable(f"{call.target} has no spelling")
    return _method(path, call, names)


def _method(name: str, call: Call, names: Mapping[int, str]) -> str:
    if not call.args:
        raise NotReplayable(f"{call.target} has no self")
    own = _operand(call.args[0], names)
    rest = call.args[1:]
    if name.endswith(".__get__"):
        return f"{own}.{name.removesuffix('.__get__')}"
    if name == "__getitem__":
        return f"{own}[{_index(rest[0], names)}]"
    if name.startswith("__") and name.endswith("__"):
        return _operator(name[2:-2], call, names)
    if name in _PLAIN_METHODS and len(rest) == 1 and not call.kwargs and _scalar_or_tensor(call.args):
        return f"{own} {_PLAIN_METHODS[name]} {_operand(rest[0], names)}"
    return f"{own}.{name}({_arguments(rest, call.kwargs, names)})"


def _scalar_or_tensor(args: Sequence[Argument]) -> bool:
    return all(isinstance(argument, (Ref, int, float)) for argument in args)


def _operator(name: str, call: Call, names: Mapping[int, str]) -> str:
    operands = [_operand(argument, names) for argument in call.args]
    if name in _UNARY and len(operands) == 1:
        return f"{_UNARY[name]}{operands[0]}"
    if len(operands) == 2 and not call.kwargs:
        if name in _BINARY:
            return f"{operands[0]} {_BINARY[name]} {operands[1]}"
        if name.startswith("r") and name[1:] in _BINARY:
            return f"{operands[1]} {_BINARY[name[1:]]} {operands[0]}"
    return f"{operands[0]}.__{name}__({_arguments(call.args[1:], call.kwargs, names)})"


def _operand(argument: Argument, names: Mapping[int, str]) -> str:
    """An operand of an operator or a dot: anything that is not one name, path or plain number in parentheses."""
    text = _argument(argument, names)
    simple = text.replace(".", "_").isidentifier() or (isinstance(argument, (int, float)) and not text.startswith("-"))
    return text if simple else f"({text})"


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
