"""What a call of a model reads at least, whatever computes it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._pytree import tree_leaves


def bytes_read(model: torch.nn.Module, inputs: Sequence[object]) -> int:
    """Bytes of the model's weights and buffers and of the inputs, each once. Of an embedding's table only rows are
    read: it is left out, unless another layer has the same weight."""
    rows_only = {id(one.weight) for one in model.modules() if isinstance(one, torch.nn.Embedding)}
    others = (one for one in model.modules() if not isinstance(one, torch.nn.Embedding))
    whole = {id(weight) for one in others for weight in one.parameters(recurse=False)}
    kept = [weight for weight in model.parameters() if id(weight) in whole or id(weight) not in rows_only]
    given = [one for one in tree_leaves(list(inputs)) if isinstance(one, torch.Tensor)]
    storages = (one.untyped_storage() for one in (*kept, *model.buffers(), *given))
    return sum({one.data_ptr(): one.nbytes() for one in storages}.values())
