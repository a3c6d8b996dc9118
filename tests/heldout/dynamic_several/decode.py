"""One query of each of several sequences, over as many keys as there are by now."""

import torch


# mugraph: batch=1..4, seen=1..96, q=f16[batch, 2, 1, 32], keys=f16[batch, 2, seen, 32], values=f16[batch, 2, seen, 32]
def decode(q, keys, values):
    scores = (q @ keys.transpose(-2, -1)) * 32**-0.5
    return torch.softmax(scores, dim=-1) @ values
