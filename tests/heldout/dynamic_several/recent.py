"""New queries look at the last five keys up to their own place, which tells them apart as numbers."""

import torch


# mugraph: old=1..40, n=1..24, m=old + n, query=f16[2, n, 32], key=f16[2, m, 32], value=f16[2, m, 16]
def recent(query, key, value):
    own = torch.arange(query.shape[1]).unsqueeze(1) + (key.shape[1] - query.shape[1])
    place = torch.arange(key.shape[1])
    seen = (place <= own) & (place + 5 > own)
    scores = torch.where(seen, query @ key.transpose(1, 2) * 0.2, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value
