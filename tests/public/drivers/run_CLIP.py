"""CLIP: images beside texts."""

import torch
from clip.model import CLIP, LayerNorm
from common import EXACT, drawn, kernels_here, ready, report, tokens
from torch import nn

if EXACT:
    LayerNorm.forward = nn.LayerNorm.forward  # its own computes in float32
model = ready(
    CLIP(
        embed_dim=32, image_resolution=32, vision_layers=2, vision_width=64, vision_patch_size=8,
        context_length=16, vocab_size=256, transformer_width=64, transformer_heads=2, transformer_layers=2,
    )
)  # fmt: skip
model.logit_scale.data.fill_(2.0)
kernels_here()
results = {}
with torch.no_grad():
    for batch in range(3):
        of_images, of_texts = model(drawn(2, 3, 32, 32, seed=batch), tokens(3, 16, most=256, seed=batch))
        results[f"of images {batch}"], results[f"of texts {batch}"] = of_images, of_texts
report(results)
