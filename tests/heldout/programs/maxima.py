import torch
import torch.nn.functional as F


# mugraph: hidden=f16[24, 72], grow=f16[104, 72], shrink=f16[72, 104]
def squared_relu_mlp(hidden, grow, shrink):
    return F.linear(F.relu(F.linear(hidden, grow)) ** 2, shrink)


# mugraph: t=f32[20, 88], weight=f32[88, 40]
def scaled_by_largest(t, weight):
    scale = torch.maximum(t, -t).amax(dim=-1, keepdim=True)
    return ((t / scale.clamp(min=1e-2)) @ weight).clamp(-2.0, 2.0)


# mugraph: z=f16[36, 56], left=f16[56, 48], right=f16[56, 48]
def maxout(z, left, right):
    return torch.maximum(z @ left, z @ right).max(dim=1).values


# mugraph: query=f16[3, 44, 24], key=f16[3, 44, 24], value=f16[3, 44, 24]
def careful_attention(query, key, value):
    logits = query @ key.mT / 24**0.5
    logits = logits.masked_fill(torch.ones(44, 44, dtype=torch.bool).triu(1), float("-inf"))
    weights = (logits - logits.amax(-1, keepdim=True)).exp()
    return (weights @ value) / weights.sum(-1, keepdim=True)
