"""What all that watches or changes PyTorch calls here has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from torch.overrides import TorchFunctionMode


class TorchMode(TorchFunctionMode):
    """Within it, `called` runs in place of every PyTorch call. What `called` itself calls goes to the modes outside."""

    @abstractmethod
    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """What the call returns."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        return self.called(func, args, kwargs or {})
