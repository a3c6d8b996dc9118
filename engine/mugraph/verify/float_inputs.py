"""Inputs for the float test: normal, varied magnitudes, cancellation, large logits; laid out in memory as they will be.

Every tensor lies in a buffer of its own with NaN around it and in the gaps its strides leave, so that a load outside
the tensor shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from mugraph.ir.ops import REDUCING, Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.verify.evaluate import ancestors
from mugraph.verify.torch_reference import TORCH_TYPES, evaluate, largest

Scenario = Literal["normal", "magnitudes", "cancellation", "large logits"]
_GUARD = 1024  # elements; keeps the start of the tensor aligned
_LOGIT = 200.0  # exp overflows float16 at 11 and float32 at 89
_HEADROOM = 16.0


def scenarios(program: TensorProgram) -> tuple[Scenario, ...]:
    has_exp = any(op.kind is Kind.EXP for op in program.ops)
    return ("normal", "magnitudes", "cancellation", *(("large logits",) if has_exp else ()))


def make_inputs(program: TensorProgram, scenario: Scenario, generator: torch.Generator) -> dict[str, Tensor] | None:
    """Tensor name -> tensor with the program's shapes, strides and types, on the generator's device. Tensors with one
    source, shape and layout are one tensor. None where the program's own values leave the range of its types however
    small the inputs are made."""
    owners: dict[tuple[str, tuple[int, ...], tuple[int, ...]], str] = {}
    home: dict[str, str] = {}
    for tensor in program.tensors:
        key = (tensor.source or f"tensor {tensor.name}", tensor.shape(program.sizes), tensor.strides)
        home[tensor.name] = owners.setdefault(key, tensor.name)
    drawn = {
        name: _draw(program, program.tensor(name), scenario, number, generator)
        for number, name in enumerate(owners.values())
    }
    if scenario == "large logits":
        drawn = _enlarge_logits(program, drawn, home)
    for _ in range(12):
        placed = {name: place(drawn[name], program.tensor(name), program.sizes) for name in drawn}
        inputs = {name: placed[owner] for name, owner in home.items()}
        if _fits(program, inputs):
            return inputs
        drawn = {name: data / 4 for name, data in drawn.items()}
    return None


def _draw(
    program: TensorProgram, tensor: Layout, scenario: Scenario, number: int, generator: torch.Generator
) -> Tensor:
    shape = tuple(
        1 if stride == 0 else size for size, stride in zip(tensor.shape(program.sizes), tensor.strides, strict=True)
    )
    data = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    if scenario == "magnitudes" and len(shape) > 0:
        rows = torch.randint(-6, 7, (shape[0],), generator=generator, device=generator.device).to(torch.float64)
        data = data * torch.exp2(rows).reshape(-1, *(1 for _ in shape[1:]))
    if scenario == "cancellation":
        data = _mirror(program, tensor, data, -1.0 if number % 2 else 1.0, generator)
    return data


def _mirror(program: TensorProgram, tensor: Layout, data: Tensor, sign: float, generator: torch.Generator) -> Tensor:
    """The second half along a reduced dimension repeats the first, negated in every other tensor, up to 2^-4."""
    reduced = {axis for op in program.ops if op.kind in REDUCING for axis in op.over}
    for position, dim in enumerate(tensor.dims):
        half = data.shape[position] // 2
        if half and reduced.intersection(dim):
            first = data.narrow(position, 0, half)
            noise = torch.randn(first.shape, generator=generator, dtype=torch.float64, device=generator.device)
            data.narrow(position, half, half).copy_(sign * first + noise / 16)
            return data
    return data


def _enlarge_logits(program: TensorProgram, drawn: dict[str, Tensor], home: Mapping[str, str]) -> dict[str, Tensor]:
    """Scale what the arguments of exp come from until the largest is near _LOGIT (where it follows the inputs)."""
    arguments = [op.inputs[0] for op in program.ops if op.kind is Kind.EXP]
    above = ancestors(program.ops, arguments)
    scaled = {home[op.tensor] for op in program.ops if op.kind is Kind.LOAD and op.name in above}
    for _ in range(8):
        inputs = {name: _expanded(drawn[owner], program, name) for name, owner in home.items()}
        values = evaluate(program, inputs, rounded=False)
        top = max(float(values[name].data.abs().max()) for name in arguments)
        if not 0 < top < float("inf") or 0.5 < _LOGIT / top < 2:
            break
        factor = min(8.0, max(0.125, (_LOGIT / top) ** 0.5))
        drawn = {name: data * factor if name in scaled else data for name, data in drawn.items()}
    return drawn


def _expanded(data: Tensor, program: TensorProgram, name: str) -> Tensor:
    return data.expand(program.tensor(name).shape(program.sizes))


def _fits(program: TensorProgram, inputs: Mapping[str, Tensor]) -> bool:
    """Whether eager PyTorch would compute it without overflow, with room to spare."""
    eager = evaluate(program, inputs, rounded=True)
    if largest(eager) == float("inf"):
        return False
    return all(
        float(eager[name].data.abs().max()) * _HEADROOM < torch.finfo(TORCH_TYPES[tensor.dtype]).max
        for name, tensor in program.outputs.items()
    )


def place(data: Tensor, tensor: Layout, sizes: Sizes) -> Tensor:
    """The data (size 1 in expanded dimensions) in the tensor's type and strides, in the middle of a buffer of NaN."""
    reach = sum((size - 1) * stride for size, stride in zip(data.shape, tensor.strides, strict=True)) + 1
    buffer = torch.full((reach + 2 * _GUARD,), float("nan"), dtype=TORCH_TYPES[tensor.dtype], device=data.device)
    view = buffer.as_strided(data.shape, tensor.strides, _GUARD)
    view.copy_(data)
    return view.expand(tensor.shape(sizes))
