"""DiT: steps of sampling with classifier-free guidance, as sample.py asks the model for them."""

import torch
from common import EXACT, drawn, kernels_here, of_times, ready, report
from models import DiT, TimestepEmbedder

if EXACT:  # its own computes in float32
    TimestepEmbedder.timestep_embedding = staticmethod(of_times)
model = ready(DiT(input_size=8, patch_size=2, hidden_size=64, depth=2, num_heads=2, num_classes=10))
kernels_here()
with torch.no_grad():
    labels = torch.tensor([3, 7, 10, 10])
    steps = [torch.full((4,), time) for time in (999, 750, 20)]
    report([model.forward_with_cfg(drawn(4, 4, 8, 8, seed=n), time, labels, 4.0) for n, time in enumerate(steps)])
