"""The tensors that a recorded call is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.baseline.launch import Values
from mugraph.ir.calls import Argument, Call, Ref, TensorInfo


def parts(arguments: Sequence[Argument]) -> Iterator[Argument]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from parts(argument)
        else:
            yield argument


def tensors(call: Call, values: Values) -> list[TensorInfo]:
    """Those of its arguments that have dimensions, in order; one that is given twice is there twice."""
    given = [part.value for part in parts((*call.args, *call.kwargs.values())) if isinstance(part, Ref)]
    return [values[value] for value in given if values[value].shape]


def given_values(call: Call) -> list[int]:
    """Its operands, each as often as it is one."""
    return [part.value for part in parts(call.args) if isinstance(part, Ref)]
