import torch
import torch.nn.functional as F
from torch import nn


# mugraph: tokens=bf16[7, 96], codes=i8[40, 96], steps=bf16[40, 3]
def scales_of_groups(tokens, codes, steps):
    out_features, groups = steps.shape
    by_group = codes.view(out_features, groups, -1).to(tokens.dtype)
    weight = (by_group * steps.unsqueeze(-1)).view(out_features, -1)
    return F.linear(tokens, weight)


# mugraph: hidden=f16[19, 64], packed=u8[72, 64], zero=f16[72, 1], step=f16[72, 1], bias=f16[72]
def zero_points(hidden, packed, zero, step, bias):
    weight = (packed.half() - zero) * step
    return F.silu(hidden @ weight.t() + bias)


# mugraph: x=f32[9, 80], kernel=i8[80, 56], per_column=f32[56]
def in_float32(x, kernel, per_column):
    return torch.matmul(x, kernel.float()) * per_column


# mugraph: activations=i8[18, 64], weights=i8[50, 64], sa=f32[18, 1], sb=f32[50]
def both_sides(activations, weights, sa, sb):
    return (activations.float() @ weights.float().T) * sa * sb


# mugraph: logits=i8[33, 50]
def largest(logits):
    return logits.float().amax(-1) * 0.1


# mugraph: x=f16[20, 64], w=f8e5m2[48, 64], s=f16[48, 1]
def float8(x, w, s):
    return x @ (w.to(torch.float16) * s).T


# mugraph: x=f16[3, 5, 64]
class WeightOnly(nn.Module):
    """As gpt-fast keeps its weights."""

    def __init__(self, inner: int = 64, outer: int = 88):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (outer, inner), dtype=torch.int8))
        self.register_buffer("scales", torch.full((outer,), 0.01, dtype=torch.float16))

    def forward(self, x):
        return F.linear(x, self.weight.to(dtype=x.dtype)) * self.scales


# mugraph: x=bf16[4, 64]
class Float8Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.linspace(-3.0, 3.0, 40 * 64).view(40, 64).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", torch.full((40, 1), 0.02, dtype=torch.bfloat16))

    def forward(self, x):
        weight = self.weight.to(x.dtype) * self.weight_scale
        return F.gelu(F.linear(x, weight), approximate="tanh")


# mugraph: x=bf16[16, 64], stored=i8[48, 64], s=f32[48]
def scales_in_float32(x, stored, s):
    return x @ (stored.float() * s[:, None]).to(torch.bfloat16).T


# mugraph: x=f16[12, 64], even=i8[40, 32], odd=i8[40, 32], step=f16[40, 4], zero=f16[40, 4]
def nibbles_in_turn(x, even, odd, step, zero):
    codes = torch.stack((even, odd), dim=2).flatten(1)
    by_group = codes.view(codes.shape[0], step.shape[1], -1).to(x.dtype)
    return F.linear(x, ((by_group - zero.unsqueeze(2)) * step.unsqueeze(2)).flatten(1))
