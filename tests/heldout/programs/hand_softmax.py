import torch


# mugraph: scores=f32[24, 200]
def stable_softmax(scores):
    top = scores.max(dim=-1, keepdim=True).values
    shifted = scores - top
    e = torch.exp(shifted)
    return e / e.sum(-1, keepdim=True)


# mugraph: logits=f16[48, 136], values=f16[136, 72]
def weighted(logits, values):
    logits = logits - logits.amax(dim=1, keepdim=True)
    weights = logits.exp()
    weights = weights / weights.sum(dim=1, keepdim=True)
    return weights @ values
