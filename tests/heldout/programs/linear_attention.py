import torch.nn.functional as F


# mugraph: q=f16[2, 100, 32], k=f16[2, 100, 32], v=f16[2, 100, 48]
def linear_attention(q, k, v):
    kv = k.transpose(1, 2) @ v
    return q @ kv


# mugraph: q=f32[2, 100, 32], k=f32[2, 100, 32], v=f32[2, 100, 48]
def kernelised(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    num = q @ (k.transpose(1, 2) @ v)
    den = (q * k.sum(dim=1, keepdim=True)).sum(-1, keepdim=True)
    return num / den


# mugraph: x=f16[64, 64], h=f16[64, 128], w=f16[128, 32]
def graph_layer(x, h, w):
    """Adjacency, features, weights; rows weighed by degree."""
    degree = x.sum(dim=1, keepdim=True)
    return (x @ (h @ w)) / degree


# mugraph: q=f16[2, 80, 48], k=f16[2, 80, 48], v=f16[2, 80, 48]
def same_shapes(q, k, v):
    """Read in another order than passed, and nothing about the shapes tells them apart."""
    kv = k.transpose(1, 2) @ v
    return q @ kv / 80.0
