"""Layer norm spelled out, by mean and variance, by std, and by the library."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[64, 1024], g=f16[1024], b=f16[1024], w=f16[1024, 256]
def by_variance(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True, unbiased=False)
    return ((x - mean) / torch.sqrt(var + 1e-5) * g + b) @ w


# mugraph: x=f16[64, 1024], w=f16[1024, 256]
def by_squares(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x = x.float()
    centred = x - x.mean(-1, keepdim=True)
    normed = centred * torch.rsqrt(torch.mean(torch.square(centred), dim=-1, keepdim=True) + 1e-5)
    return normed.half() @ w


# mugraph: x=f16[64, 1024], g=f16[1024], b=f16[1024], w=f16[1024, 256]
def by_library(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (1024,), g, b) @ w
