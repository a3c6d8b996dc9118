"""A linear layer with weights of float16, beside those with weights of eight and four bits."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[1, 4096], w=f16[14336, 4096]
def one_row(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w)


# mugraph: x=f16[8, 4096], w=f16[14336, 4096]
def eight_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w)


# mugraph: x=f16[64, 4096], w=f16[14336, 4096]
def many_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w)
