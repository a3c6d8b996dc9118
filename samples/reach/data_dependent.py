"""A branch on data, and a print: no region may hold them."""

import torch


# mugraph: x=f16[64, 512], w=f16[512, 512]
def data_dependent(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x @ w) / w.shape[0] ** 0.5
    if y.abs().max() > 100:
        print("large activations")
        y = y / 2
    return y @ w
