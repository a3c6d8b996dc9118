"""Recorded calls as lines of Python: what is used once and has no name in the user's code is written where it is used.

`scores = q @ k.transpose(-1, -2) * 0.125`, as its author wrote it, not a line for each of its three calls.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mugraph.ir.calls import STORES, is_inplace, operands
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Argument, Call, Ref
from mugraph.trace.regions.emit_call import NotReplayable, call_text

WIDTH = 100
"""Columns of a line, its indent aside."""

_TUPLES = frozenset({"split", "split_with_sizes", "tensor_split", "chunk", "unbind", "hsplit", "vsplit", "dsplit"})
"""Calls that return a tuple even when it holds one tensor."""


def statement(made: Call, names: Mapping[int, str]) -> list[str]:
    """Lines of Python that run a recorded call and bind what it returns (several tensors: unpacked).

    Raises Rejected where the call cannot be spelled.
    """
    text = _spelled(made, names)
    if made.target == STORES:
        (stored,) = made.outputs
        own = names[operands(made)[0]]
        return [*text.splitlines(), *([] if names[stored] == own else [f"{names[stored]} = {own}"])]
    parsed = ast.parse(text).body
    if len(parsed) == 1 and isinstance(parsed[0], ast.Expr):
        targets = ", ".join(names[value] for value in made.outputs)
        if len(made.outputs) == 1 and made.target.rpartition(".")[2] in _TUPLES:
            targets = f"({targets},)"
        text = f"{targets} = {text}" if targets else text
    return text.splitlines()


def statements(calls: Sequence[Call], names: Mapping[int, str], bound: Collection[int]) -> list[str]:
    """Lines of Python that run the calls in order. Raises Rejected where one cannot be spelled.

    names: value number -> name, a tensor that is there from the start first
    bound: values that get a line of their own: those with a name in the user's code, and those used elsewhere
    """
    uses = Counter(value for made in calls for argument in _arguments(made) for value in _refs(argument))
    writes = any(is_inplace(made) for made in calls)  # then the order of the lines means something
    spelled = dict(names)
    waiting: dict[int, Call] = {}
    lines: list[str] = []
    for made in calls:
        inner = [value for argument in _arguments(made) for value in _refs(argument) if value in waiting]
        while inner and len(max(statement(made, spelled), key=len)) > WIDTH:
            longest = max(inner, key=lambda value: len(spelled[value]))
            inner.remove(longest)
            lines.append(f"{names[longest]} = {spelled[longest]}")
            spelled[longest] = names[longest]
            del waiting[longest]
        value = made.outputs[0] if len(made.outputs) == 1 else -1
        alone = value >= 0 and uses[value] == 1 and value not in bound and not _is_tuple(made)
        if alone and not writes and "\n" not in (text := _spelled(made, spelled)):
            waiting[value] = made
            spelled[value] = text
        else:
            lines += statement(made, spelled)
    return lines


def _spelled(made: Call, names: Mapping[int, str]) -> str:
    try:
        return call_text(made, names)
    except NotReplayable as error:
        raise Rejected(str(error)) from None


def _is_tuple(made: Call) -> bool:
    return made.target.rpartition(".")[2] in _TUPLES


def _arguments(made: Call) -> list[Argument]:
    return [*made.args, *made.kwargs.values()]


def _refs(argument: Argument) -> list[int]:
    """Values in the argument, as often as they are in it."""
    if isinstance(argument, Ref):
        return [argument.value]
    if isinstance(argument, tuple):
        return [value for item in argument for value in _refs(item)]
    if isinstance(argument, slice):
        bounds: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
        return [value for item in bounds for value in _refs(item)]
    return []
