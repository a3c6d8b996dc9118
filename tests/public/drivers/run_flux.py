"""flux: steps of flow matching on an image's tokens and a text's, with guidance."""

import torch
from common import EXACT, drawn, kernels_here, of_times, ready, report
from flux import model

if EXACT:  # what it computes in float32
    torch.Tensor.float = torch.Tensor.double
    model.timestep_embedding = lambda times, size: of_times(1000.0 * times, size)
    torch.Tensor.type_as = lambda self, other: self.to(other.dtype)
parameters = model.FluxParams(
    in_channels=16, out_channels=16, vec_in_dim=32, context_in_dim=48, hidden_size=64, mlp_ratio=4.0, num_heads=2,
    depth=2, depth_single_blocks=2, axes_dim=[8, 12, 12], theta=10_000, qkv_bias=True, guidance_embed=True,
)  # fmt: skip
flux = ready(model.Flux(parameters))
kernels_here()
places = torch.stack([torch.zeros(16), torch.arange(16) // 4, torch.arange(16) % 4], dim=-1)[None].repeat(2, 1, 1)
results = []
with torch.no_grad():
    for step in range(3):
        results.append(
            flux(
                img=drawn(2, 16, 16, seed=step), img_ids=places.to(drawn(1).dtype), txt=drawn(2, 8, 48, seed=20),
                txt_ids=torch.zeros(2, 8, 3, dtype=drawn(1).dtype), timesteps=drawn(2, seed=step).abs(),
                y=drawn(2, 32, seed=21), guidance=torch.full((2,), 3.5, dtype=drawn(1).dtype),
            )
        )  # fmt: skip
report(results)
