"""The mode in which the traced program's tensors have shapes, types and strides, and no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_ATEN = torch.ops.aten
_VIEWS = frozenset({_ATEN.view.default, _ATEN._unsafe_view.default, _ATEN._reshape_alias.default})


class WithoutNumbers(FakeTensorMode):
    """PyTorch's own mode, whose work is not taken for the program's.

    Most calls reach it from within a `TorchMode`, which is not entered twice. `torch.Tensor([1.0])` and the other
    constructors that are classes are no calls to those modes: what PyTorch then calls to make a tensor without numbers
    would go to them, which put it on another device and record it.

    A view has the strides that it has with numbers. The mode's own rule gives a dimension of one element another
    stride, by which a convolution of it chooses another order of memory.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = {},
    ) -> object:
        with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            if func in _VIEWS and (strided := _as_strided(*args[:2])) is not None:
                func, args, kwargs = _ATEN.as_strided.default, strided, {}
            return super().__torch_dispatch__(func, types, args, kwargs)


def _as_strided(given: object, shape: object) -> tuple[object, ...] | None:
    """The arguments by which the view is made; None where sizes are unknown, or there is no such view."""
    if not isinstance(given, FakeTensor) or not isinstance(shape, Sequence):
        return None
    layout: list[object] = [*given.shape, *given.stride(), given.storage_offset(), *cast(Sequence[object], shape)]
    if not all(type(number) is int for number in layout):
        return None
    bare = torch.empty_strided(given.shape, given.stride(), device="meta", dtype=given.dtype)
    try:
        view = bare.view(cast("Sequence[int]", shape))
    except RuntimeError:
        return None
    return given, view.shape, view.stride(), given.storage_offset()
