"""The programs of the campaign: ordinary PyTorch at small sizes that no tile divides.

Each function is traced and searched for graphs (search_pool.py), and run as it stands, in float64, as the reference of
every mutant and rewrite (reference.py). Two of the sizes are ranges.
"""

import torch
import torch.nn.functional as F


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear(x, g, w):
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g) @ w


# mugraph: x=f16[12, 40], w=f16[40, 36], v=f16[40, 36]
def gated_mlp(x, w, v):
    return F.silu(x @ w) * (x @ v)


# mugraph: x=f16[20, 40], w=f16[40, 36], a=f16[40, 8], b=f16[8, 36]
def lora(x, w, a, b):
    return x @ w + (x @ a) @ b


# mugraph: x=f16[20, 40], g=f16[40], b=f16[40], w=f16[40, 36]
def layer_norm_linear(x, g, b, w):
    return F.layer_norm(x, (40,), g, b) @ w


# mugraph: q=f16[2, 24, 16], k=f16[2, 24, 16], v=f16[2, 24, 12]
def causal_attention(q, k, v):
    scores = q @ k.mT * 0.25
    scores = scores.masked_fill(torch.ones(24, 24, dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


# mugraph: q=f32[2, 40, 16], k=f32[2, 40, 16], v=f32[2, 40, 12]
def sliding_window(q, k, v):
    e = torch.exp(q @ k.mT * 0.25).tril().triu(-6)
    return (e / e.sum(-1, keepdim=True)) @ v


# mugraph: q=f16[2, 3, 5, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def grouped_queries(q, k, v):
    scores = torch.einsum("bgqd,bnd->bgqn", q, k) * 0.25
    return torch.einsum("bgqn,bne->bgqe", scores.softmax(-1), v)


# mugraph: q=f16[2, 1, 16], k=f16[2, 128, 16], v=f16[2, 128, 12]
def decoding(q, k, v):
    return (q @ k.mT * 0.25).softmax(-1) @ v


# mugraph: q=f16[2, 20, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def qk_norm_attention(q, k, v):
    q = q / (q.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    k = k / (k.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    return (q @ k.mT * 0.25).softmax(-1) @ v


# mugraph: x=f32[20, 40], w=f32[40, 12]
def hand_softmax(x, w):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ w


# mugraph: x=f16[2, 6, 29], w=f16[20, 6, 3], b=f16[20]
def temporal_convolution(x, w, b):
    return F.silu(F.conv1d(x, w, b, stride=2, dilation=2, padding=1))


# mugraph: x=f16[1, 5, 5, 7], w=f16[12, 5, 3, 3]
def image_convolution(x, w):
    return F.silu(F.conv2d(x, w, padding=1))


# mugraph: t=f32[20, 40], w=f32[40, 12]
def scaled_by_largest(t, w):
    scale = t.abs().amax(dim=-1, keepdim=True)
    return ((t / scale.clamp(min=1e-2)) @ w).clamp(-2.0, 2.0)


# mugraph: z=f16[20, 40], left=f16[40, 36], right=f16[40, 36]
def maxout(z, left, right):
    return torch.maximum(z @ left, z @ right).max(dim=1).values


# mugraph: x=f16[20, 40], up=f16[36, 40], down=f16[40, 36]
def squared_relu(x, up, down):
    return F.linear(F.relu(F.linear(x, up)).square(), down)


# mugraph: a=f16[2, 20, 24], b=f16[2, 24, 36], c=f16[2, 36, 12]
def chained_products(a, b, c):
    return (a @ b) @ c


# mugraph: q=f16[2, 20, 16], k=f16[2, 36, 16], c=f16[36, 16], s=f16[36, 16]
def rotary_scores(q, k, c, s):
    q = q * c[16:] + torch.cat([-q[..., 8:], q[..., :8]], dim=-1) * s[16:]
    k = k * c + torch.cat([-k[..., 8:], k[..., :8]], dim=-1) * s
    return q @ k.mT * 0.25


# mugraph: x=f16[20, 40], y=f16[20, 40], w=f16[40, 36]
def residual_and_product(x, y, w):
    h = x + y
    return h, (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)) @ w


# mugraph: x=f32[20, 40]
def moments(x):
    mean = x.mean(-1)
    variance = (x - mean.unsqueeze(-1)).square().mean(-1)
    return mean, variance


# mugraph: b=1..20, x=f16[b, 40], g=f16[40], w=f16[40, 36]
def norm_linear_of_any_batch(x, g, w):
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * scale * g) @ w


# mugraph: b=1..6, q=f16[b, 20, 16], k=f16[b, 40, 16], v=f16[b, 40, 12]
def attention_of_any_batch(q, k, v):
    return ((q @ k.mT) / 4).softmax(-1) @ v


# mugraph: a=f16[20, 40], b=f16[40, 36], c=f16[20, 24], d=f16[24, 36]
def sum_of_products(a, b, c, d):
    return a @ b + 0.5 * (c @ d)


# mugraph: a=f32[20, 24], b=f32[36, 24]
def squared_distances(a, b):
    aa = (a**2).sum(1)[:, None]
    bb = (b**2).sum(1)[None, :]
    return aa + bb - 2 * a @ b.T


# mugraph: a=f32[20, 24], b=f32[36, 24]
def cosine_similarity(a, b):
    return F.normalize(a, dim=-1, eps=0.0) @ (b / b.norm(dim=-1, keepdim=True)).T


# mugraph: x=f16[20, 40], h=f16[20, 40], alpha=f16[40]
def norm_transformer(x, h, alpha):
    step = h / h.norm(dim=-1, keepdim=True) - x
    moved = x + alpha * step
    return moved / moved.norm(dim=-1, keepdim=True)


# mugraph: q=f32[2, 24, 12], k=f32[2, 24, 12], v=f32[2, 24, 20]
def causal_linear_attention(q, k, v):
    return (q @ k.mT).tril() @ v


# mugraph: x=f16[20, 40], w=f16[40, 36], bias=f16[36]
def gelu_layer(x, w, bias):
    return F.gelu(x @ w + bias)


# mugraph: x=f32[20, 24]
def gram(x):
    return torch.tanh(x @ x.T)


# mugraph: x=f16[2, 24, 40], gate=f16[2, 24, 40], w=f16[40, 12]
def pooled(x, gate, w):
    return (x * torch.sigmoid(gate)).mean(1) @ w
