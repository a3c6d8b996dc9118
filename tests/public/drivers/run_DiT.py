"""DiT: steps of sampling with classifier-free guidance, as sample.py asks the model for them."""

import math

import torch
from common import EXACT, drawn, kernels_here, ready, report
from models import DiT, TimestepEmbedder


def embedded(times, size):
    """What its embedding of times, in float32, is a rounding of."""
    angles = times[:, None].double() * torch.exp(-math.log(10000) * torch.arange(size // 2).double() / (size // 2))
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


if EXACT:
    TimestepEmbedder.timestep_embedding = staticmethod(embedded)
model = ready(DiT(input_size=8, patch_size=2, hidden_size=64, depth=2, num_heads=2, num_classes=10))
kernels_here()
with torch.no_grad():
    labels = torch.tensor([3, 7, 10, 10])
    steps = [torch.full((4,), time) for time in (999, 750, 20)]
    report([model.forward_with_cfg(drawn(4, 4, 8, 8, seed=n), time, labels, 4.0) for n, time in enumerate(steps)])
