"""A search unit as the plain PyTorch calls it was recorded from: what its kernel is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.codegen.statements import statement
from mugraph.ir.calls import operands, renumbered
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Call, Region, SearchUnit

FUNCTION = "plain"


def plain_source(unit: SearchUnit) -> tuple[str, tuple[int, ...]]:
    """A module with a function `plain`, and the value numbers of its arguments in order.

    Raises codegen's Rejected where a call cannot be spelled.
    """
    made = {value for call in unit.calls for value in call.outputs}
    read = [value for call in unit.calls for value in operands(call) if value not in made]
    arguments = tuple(dict.fromkeys([value for value in unit.inputs.values() if value not in unit.view_values] + read))
    if not unit.viewed.keys() | set(unit.inputs.values()) >= set(arguments):
        raise Rejected("the calls read what the kernel knows by heart")
    return _source(unit.calls, arguments, list(dict.fromkeys(unit.outputs.values()))), arguments


def region_source(region: Region) -> str:
    """A module with a function `plain`: what a region computes, of its live-ins' tensors in their order.

    Raises codegen's Rejected where a call cannot be spelled.
    """
    return _source(region.calls, [live.value for live in region.live_ins], [live.value for live in region.live_outs])


def call_source(call: Call) -> tuple[Call, str]:
    """The call with other numbers of its values, and a module with a function `plain` that makes it, of its operands in
    their order. Calls that differ in nothing but those numbers have one text.

    Raises codegen's Rejected where it cannot be spelled.
    """
    read = operands(call)
    new = {value: number for number, value in enumerate(read)}
    made = tuple(range(len(read), len(read) + len(call.outputs)))
    args = tuple(renumbered(one, new) for one in call.args)
    own = replace(call, args=args, kwargs={n: renumbered(one, new) for n, one in call.kwargs.items()}, outputs=made)
    return own, _source([own], range(len(read)), made)


def _source(calls: Sequence[Call], arguments: Sequence[int], outputs: Sequence[int]) -> str:
    values = dict.fromkeys([*arguments, *(value for made in calls for value in made.outputs)])
    names = {value: f"v{value}" for value in values}
    lines = [line for made in calls for line in statement(made, names)]
    head = f"def {FUNCTION}({', '.join(names[value] for value in arguments)}):"
    returned = f"return {', '.join(names[value] for value in outputs)}".rstrip()
    body = "\n".join(f"    {line}" for line in [*lines, returned])
    return f"import torch\nimport torch.nn.functional as F\n\n\n{head}\n{body}\n"
