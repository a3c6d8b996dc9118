"""A conditional expression over metadata, and one over None."""

import torch


# mugraph: x=f16[32, 512], w=f16[512, 512]
def conditional_expression(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, scale: float | None = None
) -> torch.Tensor:
    scale = x.shape[-1] ** -0.5 if scale is None else scale
    y = (x @ w) * scale if x.dim() == 2 else torch.einsum("bsd,de->bse", x, w)
    return y if bias is None else y + bias
