import torch
import torch.nn.functional as F


# mugraph: q=f16[4, 80, 32], k=f16[4, 80, 32], v=f16[4, 80, 32]
def cosine_attention(q, k, v, temperature: float = 10.0):
    q = F.normalize(q, dim=-1)
    k = F.normalize(k, dim=-1)
    weights = (temperature * q @ k.mT).softmax(-1)
    return weights @ v


# mugraph: a=f32[40, 48], b=f32[56, 48]
def similarity(a, b):
    a = a / a.norm(dim=-1, keepdim=True)
    b = b / torch.linalg.norm(b, dim=-1, keepdim=True)
    return a @ b.t()
