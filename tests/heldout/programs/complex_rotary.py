"""Rotary positions as complex numbers, with the factors given, or made of angles; their result is used by others."""

import torch
import torch.nn.functional as F


# mugraph: xq=f32[2, 13, 6, 16], freqs_cis=c64[13, 8]
def turned(xq: torch.Tensor, freqs_cis: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    factors = freqs_cis.view(1, 13, 1, 8)
    return torch.view_as_real(pairs * factors).flatten(3).type_as(xq)


# mugraph: keys=f16[3, 9, 4, 12], gain=f16[12], angles=f32[9, 6]
def normed_and_turned(keys: torch.Tensor, gain: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    keys = F.rms_norm(keys, (12,), gain, 1e-5)
    factors = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(keys.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * factors[None, :, None, :]).flatten(3).to(keys.dtype)
