"""The matrix products of a recorded call: of a linear layer, an attention, an equation."""

from __future__ import annotations

from math import prod

from mugraph.baseline.arguments import given_values, tensors
from mugraph.baseline.contractions import Step, contractions
from mugraph.baseline.launch import Values, name_of
from mugraph.ir.calls import Call
from mugraph.ir.library import Product
from mugraph.ir.ops import Tf32


def product_of(call: Call, values: Values) -> Product:
    """Of two operands: what both share with the result are matrices, what the result lacks is summed."""
    out = values[call.outputs[0]].shape
    operand = [info.shape for info in tensors(call, values)]
    name = name_of(call)
    if name in ("addmm", "baddbmm", "addbmm", "addmv"):
        operand = operand[1:] if len(operand) > 2 else operand
    if len(operand) < 2:
        operand = [*operand, *operand] if operand else [(1,), (1,)]
    left, right = operand[0], operand[1]
    if name == "einsum":  # of an equation that is not read
        return Product(1, prod(left[:-1]), max(1, prod(right) // max(1, left[-1])), left[-1])
    if name in ("outer", "ger"):
        return Product(1, prod(left), prod(right), 1)
    depth = left[-1]
    if name == "linear":
        return Product(1, prod(left[:-1]), right[0], depth)
    if len(right) <= 2:  # the batch of the left operand is rows
        columns = right[-1] if len(right) == 2 else 1
        return Product(1, max(1, prod(left[:-1])), columns, depth)
    rows = left[-2] if len(left) > 1 else 1
    return Product(max(1, prod(out) // max(1, rows * right[-1])), rows, right[-1], depth)


def steps_of(call: Call, values: Values) -> list[Step] | None:
    equation = next((part for part in call.args if isinstance(part, str)), "")
    return contractions(equation, [values[value].shape for value in given_values(call)])


def attention_of(call: Call, values: Values) -> tuple[Product, ...]:
    query, key, value, *_ = tensors(call, values)
    matrices, rows, depth = prod(query.shape[:-2]), query.shape[-2], query.shape[-1]
    keys, columns = key.shape[-2], value.shape[-1]
    return Product(matrices, rows, keys, depth), Product(matrices, rows, columns, keys)


def tf32_of(call: Call) -> Tf32:
    """The setting by which a product is computed on the tensor cores in float32; "" where it is not."""
    return "cublas" if call.tf32 else ""
