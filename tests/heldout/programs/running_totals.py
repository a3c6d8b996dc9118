"""Running totals: decays of state-space models, sampling by a nucleus, rewards still to come, places in a batch."""

import torch
import torch.nn as nn


# mugraph: dt=f32[2, 200, 6], a=f32[6]
def decays(dt, a):
    """From the beginning of a sequence to each place, and from each place to its end."""
    steps = dt * a
    return torch.exp(torch.cumsum(steps, dim=1) * -0.01)


# mugraph: dt=f32[2, 200, 6], a=f32[6]
def left_to_the_end(dt, a):
    return torch.flip(torch.cumsum(torch.flip(dt * a, dims=[1]), dim=1), dims=[1]) - dt * a


# mugraph: a=f16[4, 3, 5, 48]
def segments(a):
    """Sums over the segment between any two places of a chunk (Mamba 2's segsum)."""
    length = a.size(-1)
    total = torch.cumsum(a, dim=-1)
    between = total[..., :, None] - total[..., None, :]
    causal = torch.tril(torch.ones(length, length, dtype=torch.bool))
    return torch.exp(between.masked_fill(~causal, float("-inf")))


# mugraph: logits=f32[16, 1000]
def nucleus(logits):
    probabilities = torch.softmax(logits * 1.25, dim=-1)
    return probabilities.cumsum(-1) - probabilities


# mugraph: rewards=f32[33, 700], alive=bool[33, 700]
def returns(rewards, alive):
    return (rewards * alive).flip(-1).cumsum(-1).flip(-1)


# mugraph: lengths=f32[50, 90]
def offsets(lengths):
    return torch.cat([torch.zeros_like(lengths[:1]), lengths[:-1].cumsum(0)], dim=0)


# mugraph: x=f32[8, 1500]
class CentredPath(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1500))

    def forward(self, x):
        return torch.cumsum(x - x.mean(-1, keepdim=True), -1) * self.gain
