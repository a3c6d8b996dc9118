"""The `@triton.jit` function around a kernel's body: its parameters, and which of them are known at compile time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.codegen.tile.axes import Plan
from mugraph.codegen.tile.index import Names
from mugraph.ir.block import BlockGraph

_WIDTH = 120


@dataclass(frozen=True)
class JitFunction:
    """
    pointers:   parameters for the tensors, inputs first
    arguments:  parameter -> the dynamic axis whose size it is
    constexprs: the other parameters, with their values
    """

    text: str
    pointers: tuple[str, ...]
    arguments: Mapping[str, str]
    constexprs: Mapping[str, int | float]


def jit_function(
    name: str, block: BlockGraph, plan: Plan, names: Names, constants: Mapping[str, int | float], body: Sequence[str]
) -> JitFunction:
    """With a parameter for every size, constant and tile that the body mentions."""
    words = set(re.findall(r"\w+", "\n".join(body)))
    pointers = tuple(names.pointer[tensor.name] for tensor in (*block.inputs, *block.outputs))
    sizes = {names.size[axis]: p.size for axis, p in plan.items() if names.size[axis] in words and not p.dynamic}
    arguments = {names.size[axis]: axis for axis, p in plan.items() if names.size[axis] in words and p.dynamic}
    tiles = {names.block[axis]: p.block for axis, p in plan.items() if names.block[axis] in words}
    tiles = {name: value for name, value in tiles.items() if name not in sizes}
    tiles |= {name: plan[axis].part for axis, name in names.part.items()}
    named = {name: value for name, value in constants.items() if name in words}
    constexprs: dict[str, int | float] = {**sizes, **named, **tiles}
    lines = [
        list(pointers),
        list(arguments),
        *([f"{p}: tl.constexpr" for p in group] for group in (sizes, named, tiles)),
    ]
    signature = [line for parameters in lines for line in _wrapped(parameters)]
    # One binary for all sizes: Triton would make others for 1 and for multiples of 16.
    once = f"(do_not_specialize=[{', '.join(map(repr, arguments))}])".replace("'", '"') if arguments else ""
    text = "\n".join([f"@triton.jit{once}", f"def {name}(", *signature, "):", *body])
    return JitFunction(text, pointers, arguments, constexprs)


def _wrapped(parameters: Sequence[str]) -> list[str]:
    """Lines with as many of them as fit."""
    lines: list[str] = []
    for parameter in parameters:
        if lines and len(lines[-1]) + len(parameter) + 2 <= _WIDTH:
            lines[-1] += f" {parameter},"
        else:
            lines.append(f"    {parameter},")
    return lines
