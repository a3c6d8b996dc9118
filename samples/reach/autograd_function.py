"""A custom autograd.Function: its backward is its own, so it is a barrier."""

import torch
from torch.autograd.function import FunctionCtx


class SwishImplementation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * s * (1 + x * (1 - s))


# mugraph: x=f16[32, 256], w=f16[256, 512], v=f16[512, 256]
def autograd_function(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return SwishImplementation.apply(x @ w) @ v
