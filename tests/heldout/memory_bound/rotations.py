"""Rotary positions whose result something else reads, alone and after a norm; and other concatenated results."""

import torch
import torch.nn.functional as F


# mugraph: q=bf16[2, 24, 777, 96], cos=bf16[777, 96], sin=bf16[777, 96]
def halves(q, cos, sin):
    left, right = q.chunk(2, dim=-1)
    return q * cos + torch.cat((-right, left), dim=-1) * sin


# mugraph: q=f32[2, 777, 12, 64], cos=f32[777, 1, 32], sin=f32[777, 1, 32]
def in_pairs(q, cos, sin):
    even, odd = q.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


# mugraph: x=f16[3, 2048, 20, 128], gain=f16[128], cos=f16[2048, 128], sin=f16[2048, 128]
def norm_and_halves(x, gain, cos, sin):
    x = F.rms_norm(x, (128,), gain, 1e-5).transpose(1, 2)
    turned = torch.cat((-x[..., 64:], x[..., :64]), dim=-1)
    return x * cos + turned * sin


# mugraph: x=f32[4096, 512], y=f32[4096, 512]
def both_gates(x, y):
    return torch.cat((torch.sigmoid(x) * y, torch.tanh(y) + x), dim=1)


# mugraph: scores=f16[8, 16, 512, 1537]
def without_the_sink(scores):
    return torch.softmax(scores, dim=-1)[..., :-1] * 0.5
