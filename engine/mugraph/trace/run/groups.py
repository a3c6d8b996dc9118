"""Process groups as the recorded program had them, of processes that are not there: nothing is sent to anyone."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, cast

import torch

from mugraph.trace.picture import Distributed


def set_up(wanted: Distributed | None) -> None:
    """Once in the life of this process. Does nothing where this PyTorch has no groups without processes."""
    dist = cast(Any, torch.distributed)
    if wanted is None or not dist.is_available() or dist.is_initialized():
        return
    with contextlib.suppress(ImportError):
        fake = cast(Any, importlib.import_module("torch.testing._internal.distributed.fake_pg"))
        dist.init_process_group("fake", rank=wanted.rank, world_size=wanted.processes, store=fake.FakeStore())
        for group in wanted.groups:
            with contextlib.suppress(ImportError, AttributeError):
                module = importlib.import_module(group.module)
                if getattr(module, group.name) is None:  # what an import leaves
                    setattr(module, group.name, dist.new_group(list(group.ranks)))
