import torch
import torch.nn.functional as F


# mugraph: q=f16[1, 6, 5, 48], k=f16[1, 2, 2000, 48], v=f16[1, 2, 2000, 48]
def three_heads_share(q, k, v):
    """Speculative decoding: a few queries of every head; keys repeated as transformers libraries do."""
    k = torch.repeat_interleave(k, 3, dim=1)
    v = torch.repeat_interleave(v, 3, dim=1)
    probabilities = F.softmax(q @ k.mT * 48**-0.5, dim=-1)
    return probabilities @ v


# mugraph: xq=f16[1, 4, 10, 32], xk=f16[1, 300, 2, 32], xv=f16[1, 300, 2, 32], bias=f16[4, 300]
def five_heads_share(xq, xk, xv, bias):
    """Heads behind positions, the group an axis of its own, a bias that all heads share."""
    b, t, n, c = xq.shape
    grouped = xq.reshape(b, t, 2, 5, c)
    logits = torch.einsum("btkgc,bskc->bkgts", grouped, xk) / c**0.5 + bias
    mixed = torch.einsum("bkgts,bskc->btkgc", logits.softmax(-1), xv)
    return mixed.reshape(b, t, n * c)
