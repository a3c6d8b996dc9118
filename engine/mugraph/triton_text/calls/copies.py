"""Copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mugraph.triton_text.calls.call import Box, Call, Reading
from mugraph.triton_text.reals import Real
from mugraph.triton_text.tensors import HostTensor


def _copy(call: Call, box: Box) -> Real:
    return call.part(call.operands[0], box)


def _shape_of_copy(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    return operands[0].shape


READINGS: Mapping[str, Reading] = {"torch.clone": Reading(("input",), 1, _shape_of_copy, _copy, copies=True)}
