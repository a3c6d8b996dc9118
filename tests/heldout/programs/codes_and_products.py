import torch
import torch.nn.functional as F
from torch import nn

E4M3_TOP = torch.finfo(torch.float8_e4m3fn).max


# mugraph: g=f32[16, 144]
def gradients(g):
    factor = 57344.0 / g.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    return (g * factor).clamp(-57344.0, 57344.0).to(torch.float8_e5m2), 1.0 / factor


# mugraph: w=bf16[40, 160]
def pretended(w):
    """Quantised and taken back at once."""
    unit = w.float().abs().amax(dim=1, keepdim=True) / 7.0
    return (torch.clamp(torch.round(w.float() / unit), -8, 7) * unit).to(w.dtype)


# mugraph: t=f32[26, 96], grid=f32[1]
def by_known_scale(t, grid):
    inside = (t / grid).clamp(-E4M3_TOP, E4M3_TOP)
    return inside.to(torch.float8_e4m3fn).float() * grid + t.mean(-1, keepdim=True)


# mugraph: x=bf16[24, 128], weight_scale=f32[1, 64]
class OnTheFly(nn.Module):
    """The norm, what is left of it in eight bits, and the product of those."""

    def __init__(self, inner: int = 128, outer: int = 64):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, inner).bfloat16(), requires_grad=False)
        weight = torch.linspace(-3.0, 3.0, outer * inner).view(outer, inner)
        self.register_buffer("weight", weight.to(torch.float8_e4m3fn))

    def forward(self, x, weight_scale):
        normed = F.rms_norm(x, (x.shape[-1],), self.gain, 1e-6).float()
        scale = normed.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 448.0
        codes = (normed / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        return torch._scaled_mm(codes, self.weight.t(), scale, weight_scale, out_dtype=torch.bfloat16)


# mugraph: x=f32[32, 64], w=i8[64, 48], per_column=f32[48]
def whole_product(x, w, per_column):
    s = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    q = (x / s).round().clamp(-127, 127).to(torch.int8)
    return torch._int_mm(q, w).float() * s * per_column
