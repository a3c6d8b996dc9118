"""Decorated functions: the def line is not the first line of the function."""

import functools
from collections.abc import Callable

import torch


def scaled(factor: float) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    def wrap(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(function)
        def call(*args: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
            return function(*args, **kwargs) * factor

        return call

    return wrap


# mugraph: x=f16[32, 512], w=f16[512, 512]
@torch.no_grad()
@scaled(0.5)
def decorated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return y * torch.sigmoid(y)
