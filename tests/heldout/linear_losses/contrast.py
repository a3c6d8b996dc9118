"""A contrastive loss: each query's own key among all of them, at a temperature."""

import torch


# mugraph: queries=f16[32, 64], keys=f16[2000, 64], own=i64[32]
def contrast(queries, keys, own):
    sim = queries @ keys.T / 0.07
    return (torch.logsumexp(sim, dim=-1) - torch.take_along_dim(sim, own[:, None], dim=1)[:, 0]).mean()
