"""Weights of four bits in the packings that people write: which half is first, which dimension is packed, signs, zero
points. One row each, or few."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[1, 128], qweight=u8[64, 48], scales=f16[4, 48]
def along_inputs_high_first(x, qweight, scales):
    """[k/2, n]; the first of two inputs in the high half; groups of 32."""
    k, n = 2 * qweight.shape[0], qweight.shape[1]
    codes = torch.stack((qweight >> 4, qweight & 0xF), dim=1).reshape(k, n)
    w = (codes.to(x.dtype) - 8).view(4, 32, n) * scales[:, None, :]
    return x @ w.view(k, n)


# mugraph: x=f16[1, 128], qweight=u8[64, 40], scales=f16[2, 40], zeros=f16[2, 40]
def along_inputs_with_zeros(x, qweight, scales, zeros):
    """[k/2, n], the first half of the inputs in the low bits; groups of 64, of which each has a zero point."""
    codes = torch.cat((qweight & 15, qweight >> 4)).to(x.dtype)
    w = (codes.view(2, 64, -1) - zeros.unsqueeze(1)) * scales.unsqueeze(1)
    return torch.matmul(x, w.flatten(0, 1))


# mugraph: hidden=bf16[2, 256], stored=i8[24, 128], step=bf16[24, 2]
def signed_halves(hidden, stored, step):
    """Both halves have a sign."""
    low = (stored & 7) - (stored & 8)
    high = stored >> 4
    w = torch.stack((low, high), -1).flatten(1).to(hidden.dtype)
    return hidden @ (w.view(24, 2, 128) * step[:, :, None]).view(24, 256).T


# mugraph: x=f32[1, 96], q=u8[56, 48], s=f32[56]
def a_scale_for_each_output(x, q, s):
    w = torch.stack([(q & 0xF0) >> 4, q & 0x0F], dim=-1).view(56, 96)
    return F.linear(x, (w.float() - 7.5) * s[:, None])


# mugraph: a=f16[1, 64], b=u8[2, 32, 32], scale=f16[2, 32, 2], zero=u8[2, 32, 2]
def two_projections(a, b, scale, zero):
    """Zero points are stored as whole numbers; what is gated and what gates it."""
    codes = torch.stack((b & 15, b >> 4), -1).view(2, 32, 2, 32)
    w = ((codes.to(a.dtype) - zero[..., None].to(a.dtype)) * scale[..., None]).flatten(2)
    return F.silu(a @ w[0].T) * (a @ w[1].T)
