"""Attention of a few heads, each by itself, and put side by side."""

import torch


# mugraph: qs=f16[2, 48, 5, 32], ks=f16[2, 80, 5, 32], vs=f16[2, 80, 5, 32]
def each_head(qs, ks, vs):
    outs = []
    for head in range(qs.size(2)):
        logits = torch.einsum("bqd,bkd->bqk", qs[:, :, head], ks[:, :, head]) / 32**0.5
        outs.append(torch.bmm(logits.softmax(-1), vs[:, :, head]))
    return torch.cat(outs, dim=-1)
