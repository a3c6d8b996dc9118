"""Functions of programs.py written in another way: `program__how`, with the same arguments.

Each is traced, and its tensor program as it stands is a graph for the program of the other name (search_pool.py).
"""

import math

import torch
import torch.nn.functional as F


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__divided_by_root(x, g, w):
    return (x / torch.sqrt((x * x).sum(-1, keepdim=True) / 40 + 1e-6) * g) @ w


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__scaled_after(x, g, w):
    return ((x * g) @ w) * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__weight_scaled(x, g, w):
    return (x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()) @ (g[:, None] * w)


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__sum_and_eps_times_n(x, g, w):
    return (x * g * math.sqrt(40)) @ w * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 40 * 1e-6)


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__power(x, g, w):
    return (x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5 * g) @ w


# mugraph: x=f16[20, 40], g=f16[40], w=f16[40, 36]
def rms_norm_linear__reciprocal(x, g, w):
    return (x * (1 / (x.pow(2).mean(-1, keepdim=True) + 1e-6)).sqrt() * g) @ w


# mugraph: x=f16[12, 40], w=f16[40, 36], v=f16[40, 36]
def gated_mlp__sigmoid(x, w, v):
    gate = x @ w
    return gate * torch.sigmoid(gate) * (x @ v)


# mugraph: x=f16[12, 40], w=f16[40, 36], v=f16[40, 36]
def gated_mlp__exp(x, w, v):
    gate = x @ w
    return gate / (1 + torch.exp(-gate)) * (x @ v)


# mugraph: x=f16[12, 40], w=f16[40, 36], v=f16[40, 36]
def gated_mlp__einsum(x, w, v):
    return torch.einsum("mk,kn->mn", x, v) * F.silu(torch.einsum("mk,kn->mn", x, w))


# mugraph: x=f16[20, 40], w=f16[40, 36], a=f16[40, 8], b=f16[8, 36]
def lora__merged(x, w, a, b):
    return x @ (w + a @ b)


# mugraph: x=f16[20, 40], w=f16[40, 36], a=f16[40, 8], b=f16[8, 36]
def lora__other_association(x, w, a, b):
    return x @ (a @ b) + x @ w


# mugraph: x=f16[20, 40], w=f16[40, 36], a=f16[40, 8], b=f16[8, 36]
def lora__scaled(x, w, a, b):
    return torch.addmm(x @ w, 4 * (x @ a), 0.25 * b)


# mugraph: x=f16[20, 40], g=f16[40], b=f16[40], w=f16[40, 36]
def layer_norm_linear__by_hand(x, g, b, w):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return ((x - mean) * torch.rsqrt(variance + 1e-5) * g + b) @ w


# mugraph: x=f16[20, 40], g=f16[40], b=f16[40], w=f16[40, 36]
def layer_norm_linear__second_moment(x, g, b, w):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return ((x - mean) / torch.sqrt(variance + 1e-5) * g + b) @ w


# mugraph: x=f16[20, 40], g=f16[40], b=f16[40], w=f16[40, 36]
def layer_norm_linear__bias_after(x, g, b, w):
    return (F.layer_norm(x, (40,)) * g) @ w + b @ w


# mugraph: x=f16[20, 40], g=f16[40], b=f16[40], w=f16[40, 36]
def layer_norm_linear__sums(x, g, b, w):
    mean = x.sum(-1, keepdim=True) / 40
    centred = x - mean
    return (centred / ((centred * centred).sum(-1, keepdim=True) / 40 + 1e-5).sqrt() * g + b) @ w


# mugraph: q=f16[2, 24, 16], k=f16[2, 24, 16], v=f16[2, 24, 12]
def causal_attention__sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# mugraph: q=f16[2, 24, 16], k=f16[2, 24, 16], v=f16[2, 24, 12]
def causal_attention__scaled_queries(q, k, v):
    scores = (q / 4) @ k.mT
    scores = scores.masked_fill(torch.ones(24, 24).tril() == 0, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


# mugraph: q=f16[2, 24, 16], k=f16[2, 24, 16], v=f16[2, 24, 12]
def causal_attention__divided_last(q, k, v):
    e = torch.exp(q @ k.mT / math.sqrt(16)).tril()
    return (e @ v) / e.sum(-1, keepdim=True)


# mugraph: q=f16[2, 24, 16], k=f16[2, 24, 16], v=f16[2, 24, 12]
def causal_attention__less_the_upper(q, k, v):
    e = torch.exp(q @ k.mT * 0.25)
    e = e - e.triu(1)
    return (e @ v) / e.sum(-1, keepdim=True)


# mugraph: q=f32[2, 40, 16], k=f32[2, 40, 16], v=f32[2, 40, 12]
def sliding_window__divided_last(q, k, v):
    e = torch.exp((0.5 * q) @ (0.5 * k).mT).triu(-6).tril()
    return (e @ v) / e.sum(-1, keepdim=True)


# mugraph: q=f32[2, 40, 16], k=f32[2, 40, 16], v=f32[2, 40, 12]
def sliding_window__less_the_rest(q, k, v):
    e = torch.exp(q @ k.mT * 0.25)
    e = e.tril() - e.tril(-7)
    return (e / e.sum(-1, keepdim=True)) @ v


# mugraph: q=f16[2, 3, 5, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def grouped_queries__matmul(q, k, v):
    scores = (q * 0.25) @ k.unsqueeze(1).mT
    return scores.softmax(-1) @ v.unsqueeze(1)


# mugraph: q=f16[2, 1, 16], k=f16[2, 128, 16], v=f16[2, 128, 12]
def decoding__divided_last(q, k, v):
    e = torch.exp(q @ (k * 0.25).mT)
    return e @ v / e.sum(-1, keepdim=True)


# mugraph: q=f16[2, 1, 16], k=f16[2, 128, 16], v=f16[2, 128, 12]
def decoding__sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


# mugraph: q=f16[2, 20, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def qk_norm_attention__rsqrt(q, k, v):
    q = q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True) + 1e-6)
    k = k * torch.rsqrt(k.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (q @ k.mT / 4).softmax(-1) @ v


# mugraph: q=f16[2, 20, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def qk_norm_attention__scaled_scores(q, k, v):
    of_q = (q.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    of_k = (k.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    return (0.25 * (q @ k.mT) / of_q / of_k.mT).softmax(-1) @ v


# mugraph: q=f16[2, 20, 16], k=f16[2, 40, 16], v=f16[2, 40, 12]
def qk_norm_attention__sum_of_squares(q, k, v):
    of_q = (q.pow(2).sum(-1, keepdim=True) + 16 * 1e-6).sqrt()
    of_k = (k.pow(2).sum(-1, keepdim=True) + 16 * 1e-6).sqrt()
    return (4 * ((q / of_q) @ (k / of_k).mT)).softmax(-1) @ v


# mugraph: x=f32[20, 40], w=f32[40, 12]
def hand_softmax__softmax(x, w):
    return F.softmax(x, dim=-1) @ w


# mugraph: x=f32[20, 40], w=f32[40, 12]
def hand_softmax__unshifted(x, w):
    e = torch.exp(x)
    return (e @ w) / e.sum(-1, keepdim=True)


# mugraph: x=f32[20, 40], w=f32[40, 12]
def hand_softmax__of_halves(x, w):
    h = torch.exp(x / 2)
    return ((h * h) @ w) / (h * h).sum(1, keepdim=True)


# mugraph: x=f16[2, 6, 29], w=f16[20, 6, 3], b=f16[20]
def temporal_convolution__bias_apart(x, w, b):
    y = F.conv1d(x, w, None, stride=2, dilation=2, padding=1) + b[:, None]
    return y * torch.sigmoid(y)


# mugraph: x=f16[1, 5, 5, 7], w=f16[12, 5, 3, 3]
def image_convolution__scaled(x, w):
    y = F.conv2d(x, 2 * w, padding="same") / 2
    return y * torch.sigmoid(y)


# mugraph: t=f32[20, 40], w=f32[40, 12]
def scaled_by_largest__after(t, w):
    scale = t.abs().amax(dim=-1, keepdim=True).clamp(min=1e-2)
    return ((t @ w) / scale).clamp(-2.0, 2.0)


# mugraph: z=f16[20, 40], left=f16[40, 36], right=f16[40, 36]
def maxout__largest_first(z, left, right):
    return torch.maximum((z @ left).amax(1), (z @ right).amax(1))


# mugraph: x=f16[20, 40], up=f16[36, 40], down=f16[40, 36]
def squared_relu__product(x, up, down):
    h = F.relu(x @ up.T)
    return (h * h) @ down.T


# mugraph: a=f16[2, 20, 24], b=f16[2, 24, 36], c=f16[2, 36, 12]
def chained_products__other_association(a, b, c):
    return a @ (b @ c)


# mugraph: a=f16[2, 20, 24], b=f16[2, 24, 36], c=f16[2, 36, 12]
def chained_products__einsum(a, b, c):
    return torch.einsum("bmk,bkr,brn->bmn", a, b, c)


# mugraph: q=f16[2, 20, 16], k=f16[2, 36, 16], c=f16[36, 16], s=f16[36, 16]
def rotary_scores__scaled(q, k, c, s):
    q = q * c[16:] + torch.cat([-q[..., 8:], q[..., :8]], dim=-1) * s[16:]
    k = (k / 4) * c + torch.cat([-k[..., 8:], k[..., :8]], dim=-1) * (s / 4)
    return q @ k.mT


# mugraph: x=f16[20, 40], y=f16[20, 40], w=f16[40, 36]
def residual_and_product__after(x, y, w):
    h = y + x
    return h, (h @ w) / torch.sqrt((h * h).mean(-1, keepdim=True) + 1e-5)


# mugraph: x=f32[20, 40]
def moments__second(x):
    mean = x.sum(-1) / 40
    return mean, (x * x).mean(-1) - mean * mean


# mugraph: x=f32[20, 40]
def moments__variance(x):
    return x.mean(-1), x.var(-1, unbiased=False)


# mugraph: b=1..20, x=f16[b, 40], g=f16[40], w=f16[40, 36]
def norm_linear_of_any_batch__after(x, g, w):
    return ((x * g) @ w) / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


# mugraph: b=1..6, q=f16[b, 20, 16], k=f16[b, 40, 16], v=f16[b, 40, 12]
def attention_of_any_batch__divided_last(q, k, v):
    e = torch.exp((q / 4) @ k.mT)
    return (e @ v) / e.sum(-1, keepdim=True)


# mugraph: a=f16[20, 40], b=f16[40, 36], c=f16[20, 24], d=f16[24, 36]
def sum_of_products__scaled(a, b, c, d):
    return ((2 * a) @ b + c @ d) / 2


# mugraph: a=f16[20, 40], b=f16[40, 36], c=f16[20, 24], d=f16[24, 36]
def sum_of_products__turned(a, b, c, d):
    return c @ (d - 0.5 * d) + a @ b


# mugraph: a=f32[20, 24], b=f32[36, 24]
def squared_distances__differences(a, b):
    return (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(-1)


# mugraph: a=f32[20, 24], b=f32[36, 24]
def squared_distances__twice(a, b):
    return (a * a).sum(1, keepdim=True) - (a @ b.T + a @ b.T) + (b * b).sum(1)


# mugraph: a=f32[20, 24], b=f32[36, 24]
def cosine_similarity__quotients(a, b):
    return (a @ b.T) / a.norm(dim=-1, keepdim=True) / b.norm(dim=-1)


# mugraph: a=f32[20, 24], b=f32[36, 24]
def cosine_similarity__one_root(a, b):
    return (a @ b.T) * torch.rsqrt((a * a).sum(-1, keepdim=True) * (b * b).sum(-1))


# mugraph: x=f16[20, 40], h=f16[20, 40], alpha=f16[40]
def norm_transformer__mixed(x, h, alpha):
    moved = (1 - alpha) * x + alpha * (h / h.norm(dim=-1, keepdim=True))
    return moved / moved.norm(dim=-1, keepdim=True)


# mugraph: q=f32[2, 24, 12], k=f32[2, 24, 12], v=f32[2, 24, 20]
def causal_linear_attention__less_the_upper(q, k, v):
    scores = q @ k.mT
    return (scores - scores.triu(1)) @ v


# mugraph: q=f32[2, 24, 12], k=f32[2, 24, 12], v=f32[2, 24, 20]
def causal_linear_attention__two_products(q, k, v):
    scores = q @ k.mT
    return scores @ v - scores.triu(1) @ v


# mugraph: x=f16[20, 40], w=f16[40, 36], bias=f16[36]
def gelu_layer__addmm(x, w, bias):
    return F.gelu(torch.addmm(bias, x, w))


# mugraph: x=f32[20, 24]
def gram__sigmoid(x):
    return 2 * torch.sigmoid(2 * (x @ x.mT)) - 1


# mugraph: x=f32[20, 24]
def gram__einsum(x):
    return torch.tanh(torch.einsum("mk,nk->mn", x, x))


# mugraph: x=f16[2, 24, 40], gate=f16[2, 24, 40], w=f16[40, 12]
def pooled__product_first(x, gate, w):
    return ((x * torch.sigmoid(gate)) @ w).sum(1) / 24


# mugraph: x=f16[2, 24, 40], gate=f16[2, 24, 40], w=f16[40, 12]
def pooled__exp(x, gate, w):
    return (x / (1 + torch.exp(-gate))).sum(1) @ (w / 24)
