"""The normalised residual update of nGPT: RMSNorm(x + alpha * (RMSNorm(h) - x)) (Mirage's nTrans)."""

import torch


def rms_norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    v = x.float()
    v = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + eps)
    return v.to(x.dtype)


# mugraph: x=f16[8, 4096], h=f16[8, 4096], alpha=f16[8, 4096]
def norm_transformer(x: torch.Tensor, h: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    h = rms_norm(h)
    return rms_norm(x + alpha * (h - x))
