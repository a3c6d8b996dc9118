import torch
import torch.nn.functional as F

E4M3_TOP = torch.finfo(torch.float8_e4m3fn).max


# mugraph: hidden=bf16[21, 192], gain=bf16[192]
def normed_tokens(hidden, gain):
    wide = hidden.to(torch.float32)
    normed = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-5) * gain
    top = normed.abs().max(dim=-1, keepdim=True).values
    per_token = torch.clamp(top / E4M3_TOP, min=1e-9)
    return torch.clamp(normed / per_token, -E4M3_TOP, E4M3_TOP).to(torch.float8_e4m3fn), per_token


# mugraph: both=f16[18, 320]
def gated_tokens(both):
    left, right = both.chunk(2, dim=-1)
    inner = F.silu(left) * right
    s = inner.abs().amax(1, keepdim=True).float().clamp_min(1e-6) / 127.0
    codes = torch.clamp(torch.round(inner.float() / s), min=-128, max=127).char()
    return codes, s.squeeze(-1)


# mugraph: act=bf16[12, 384]
def blocks_of_tokens(act):
    rows, cols = act.shape
    cut = act.reshape(rows, cols // 128, 128)
    peak = cut.float().abs().amax(dim=-1).clamp_min(1e-4)
    codes = (cut.float() * (E4M3_TOP / peak)[..., None]).to(torch.float8_e4m3fn)
    return codes.reshape(rows, cols), peak / E4M3_TOP


# mugraph: v=f32[14, 200]
def between_ends(v):
    lo, hi = v.amin(-1, True), v.amax(-1, True)
    step = ((hi - lo) / 255.0).clamp(min=1e-7)
    shift = (-lo / step).round().clamp(0, 255)
    return ((v / step).round() + shift).clamp(0, 255).to(torch.uint8), step, shift
