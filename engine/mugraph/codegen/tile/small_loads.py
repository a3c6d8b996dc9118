"""Small loads are begun before the first sum, product or loop of the statements that they stand among.

Sums and products exchange values between threads. Neither compiler moves a load over the barrier of an exchange, or out
of what follows a loop: a scale that multiplies the sum would be asked for when the sum is there, and every block would
wait for memory a second time. What is small waits in a register or two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import prod

from mugraph.codegen.tile.text import Assign, Block, Expr, Item, Line, Ref, Value
from mugraph.codegen.tile.values import Values

_SMALL = 16
"""A load is small with so many times fewer elements than the largest of the kernel."""
_EXCHANGES = re.compile(r"\btl\.(sum|max|min|dot|dot_scaled|reduce|cumsum|cumprod|associative_scan|argmax|argmin)\(")
_NAME = re.compile(r"[A-Za-z_]\w*")


def begin_small_loads(out: Values, items: list[Item]) -> None:
    """Change the order of a kernel's statements. Loads have their text. In loops it stays: what an iteration loads, the
    compiler itself begins earlier."""
    loads = {value: node.tensor for value, node in out.loads}
    elements = {value: prod(dim.extent(out.plan) for dim in value.dims) for value in loads}
    most = max(elements.values(), default=0)
    small: dict[str, Value] = {
        value.name: value
        for value, tensor in loads.items()
        if elements[value] * _SMALL <= most and tensor not in out.meeting.fresh
    }
    at = next((at for at, item in enumerate(items) if _exchanges(item)), None)
    if at is None:
        return
    after = items[at:]
    made = {name for item in after for name in _made(item)}
    moved = [item for item in after if _is_load(item, small) and not made & {*_names(item)}]
    items[at:] = [*moved, *(item for item in after if item not in moved)]


def _exchanges(item: Item) -> bool:
    match item:
        case Block():
            return True
        case Assign(value):
            return bool(_EXCHANGES.search(_text(value.expr)))
        case Line(_, expr):
            return bool(_EXCHANGES.search(_text(expr)))


def _is_load(item: Item, small: Mapping[str, Value]) -> bool:
    """The load itself, or what stands in its place and converts it."""
    return isinstance(item, Assign) and item.value.name in small and _text(item.value.expr).startswith("tl.load(")


def _made(item: Item) -> Collection[str]:
    match item:
        case Assign(value):
            return (value.name,)
        case Line(target):
            return _NAME.findall(target)
        case Block(header, body):
            return {*_NAME.findall(header), *(name for inner in body for name in _made(inner))}


def _names(item: Item) -> Sequence[str]:
    return _NAME.findall(_text(item.value.expr)) if isinstance(item, Assign) else ()


def _text(expr: Expr) -> str:
    return "".join(part.value.name if isinstance(part, Ref) else part for part in expr.parts)
