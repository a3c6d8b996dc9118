"""A search unit as the plain PyTorch calls it was recorded from: what its kernel is measured against."""

from __future__ import annotations

from mugraph.codegen.statements import statement
from mugraph.ir.calls import operands
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import SearchUnit

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
    values = dict.fromkeys([*arguments, *(value for made in unit.calls for value in made.outputs)])
    names = {value: f"v{value}" for value in values}
    lines = [line for made in unit.calls for line in statement(made, names)]
    outputs = ", ".join(names[value] for value in dict.fromkeys(unit.outputs.values()))
    head = f"def {FUNCTION}({', '.join(names[value] for value in arguments)}):"
    body = "\n".join(f"    {line}" for line in [*lines, f"return {outputs}"])
    return f"import torch\nimport torch.nn.functional as F\n\n\n{head}\n{body}\n", arguments
