"""Recurrent layers by their shapes: on fake tensors PyTorch would unroll every time step, which takes half a minute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

_LAYERS = ("torch.lstm", "torch.gru", "torch.rnn_tanh", "torch.rnn_relu")
_BIDIRECTIONAL, _BATCH_FIRST = 7, 8  # positions of arguments where the input is no packed sequence


def recurrent_by_shape(target: str, args: Sequence[object]) -> tuple[torch.Tensor, ...] | None:
    """What a recurrent layer returns (output, then one state of each kind), or None if this is not one on fake tensors.

    args: of `torch.lstm(input, (h, c), weights, biases, layers, dropout, training, bidirectional, batch_first)`
    """
    if target not in _LAYERS or len(args) <= _BATCH_FIRST or not isinstance(args[0], FakeTensor):
        return None
    states = cast("Sequence[torch.Tensor]", args[1]) if isinstance(args[1], list | tuple) else [args[1]]
    if not all(isinstance(state, torch.Tensor) for state in states):
        return None
    tensors = cast("Sequence[torch.Tensor]", states)
    width = tensors[0].shape[-1] * (2 if args[_BIDIRECTIONAL] else 1)
    first, second, _ = args[0].shape
    if args[_BATCH_FIRST]:  # PyTorch, and cuDNN for it, computes step after step, and turns the result
        out = args[0].new_empty((second, first, width)).transpose(0, 1)
    else:
        out = args[0].new_empty((first, second, width))
    return (out, *(state.new_empty(state.shape) for state in tensors))
