"""Parts `x[:, :n]` and places `x[:, n]` of tensors where n is unknown.

PyTorch asks whether n is less than there is, so that what lies beyond the end may be asked for. Where it is less at
every size of a range nothing depends on the answer: such a part is taken as one of n elements, and nothing is asked.
A place is what PyTorch takes for one number; it is taken as a part of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

_GETITEM: Any = torch.Tensor.__getitem__
_SETITEM: Any = torch.Tensor.__setitem__


class Parts(TorchFunctionMode):
    """values: numbers of the symbols, at each size of the range; taken when the code runs"""

    def __init__(self, values: Callable[[], Sequence[Mapping[object, int]]]) -> None:
        super().__init__()
        self._values = values

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (_GETITEM, _SETITEM) and isinstance(args[0], torch.Tensor):
            tensor, index = args[:2]
            items: list[Any] = list(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else [index]
            places = _places(items)
            if func is _GETITEM and places:
                items = [slice(one, one + 1) if isinstance(one, torch.SymInt) else one for one in items]
                return self._taken(tensor, items).squeeze(places)
            if func is _GETITEM and any(map(_is_symbol, items)):
                return self._taken(tensor, items)
            if func is _SETITEM and places:  # what is written has no part in what the code does
                self._taken(tensor, [slice(one, one + 1) if isinstance(one, torch.SymInt) else one for one in items])
                return None
        return func(*args, **(kwargs or {}))

    def _taken(self, tensor: torch.Tensor, items: list[Any]) -> torch.Tensor:
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


def _places(items: Sequence[Any]) -> tuple[int, ...]:
    """Dimensions of what is taken that unknown numbers in an index would be, were they parts of one element. None of
    an index with anything but numbers, parts and new dimensions."""
    if not all(item is None or type(item) in (slice, int, torch.SymInt) for item in items):
        return ()
    left = [item for item in items if isinstance(item, torch.SymInt) or not isinstance(item, int)]
    return tuple(at for at, item in enumerate(left) if isinstance(item, torch.SymInt))


def _is_symbol(part: Any) -> bool:
    """Is it a slice whose ends are unknown?"""
    return isinstance(part, slice) and any(isinstance(end, torch.SymInt) for end in _ends(part))


def _ends(part: Any) -> tuple[object, object]:
    return part.start, part.stop


def _at(number: Any, values: Mapping[object, int]) -> int:
    node: Any = getattr(number, "node", None)
    return int(number if node is None else node.expr.xreplace(values))
