"""The channels of maps are scaled to length one: the numbers of maps and channels vary, places are one axis."""

import torch


# mugraph: count=1..3, wide=20..70, maps=f32[count, wide, 6, 5]
def maps(maps):
    return maps * torch.rsqrt((maps * maps).sum(1, keepdim=True) + 1e-4)
