"""A linear layer with weights of eight bits and a scale for each output, as dequantising code writes it."""

import torch
import torch.nn.functional as F


def dequantised(w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return w.to(scale.dtype) * scale


# mugraph: x=f16[1, 4096], w=i8[14336, 4096], scale=f16[14336, 1]
def one_row(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(w, scale))


# mugraph: x=f16[8, 4096], w=i8[14336, 4096], scale=f16[14336, 1]
def eight_rows(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(w, scale))


# mugraph: x=f16[64, 4096], w=i8[14336, 4096], scale=f16[14336, 1]
def many_rows(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(w, scale))
