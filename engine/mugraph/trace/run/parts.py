"""Parts `x[:, :n]` of tensors where n is unknown.

PyTorch asks whether n is less than there is, so that what lies beyond the end may be asked for. Where it is less at
every size of a range nothing depends on the answer: such a part is taken as one of n elements, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

_GETITEM: Any = torch.Tensor.__getitem__


class Parts(TorchFunctionMode):
    """values: numbers of the symbols, at each size of the range; taken when the code runs"""

    def __init__(self, values: Callable[[], Sequence[Mapping[object, int]]]) -> None:
        super().__init__()
        self._values = values

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is _GETITEM and isinstance(args[0], torch.Tensor):
            tensor, index = args
            items: list[Any] = list(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else [index]
            if any(map(_is_symbol, items)):
                return self._taken(tensor, items)
        return func(*args, **(kwargs or {}))

    def _taken(self, tensor: torch.Tensor, items: list[Any]) -> object:
        """The parts inside of the tensor first, then the rest of the index. What follows an integer, an ellipsis or a
        tensor is left to PyTorch."""
        dim = 0
        for at, item in enumerate(items):
            if item is None:
                continue
            if not isinstance(item, slice):
                break
            part = cast("Any", item)
            if _is_symbol(part) and part.step in (None, 1):
                size: Any = tensor.shape[dim]
                start: Any = part.start if part.start is not None else 0
                stop: Any = part.stop if part.stop is not None else size
                if self._inside(start, stop, size):
                    tensor = torch.narrow(tensor, dim, start, stop - start)
                    items[at] = slice(None)
            dim += 1
        return _GETITEM(tensor, tuple(items))

    def _inside(self, start: Any, stop: Any, size: Any) -> bool:
        return all(0 <= _at(start, values) <= _at(stop, values) <= _at(size, values) for values in self._values())


def _is_symbol(part: Any) -> bool:
    """Is it a slice whose ends are unknown?"""
    return isinstance(part, slice) and any(isinstance(end, torch.SymInt) for end in _ends(part))


def _ends(part: Any) -> tuple[object, object]:
    return part.start, part.stop


def _at(number: Any, values: Mapping[object, int]) -> int:
    node: Any = getattr(number, "node", None)
    return int(number if node is None else node.expr.xreplace(values))
