"""dino: features of batches of images, and the last layer's attention, as visualize_attention.py asks for it."""

from functools import partial

import torch
from common import drawn, kernels_here, ready, report
from torch import nn
from vision_transformer import VisionTransformer

model = ready(
    VisionTransformer(
        img_size=[32], patch_size=8, embed_dim=64, depth=2, num_heads=2, mlp_ratio=4, qkv_bias=True,
        norm_layer=partial(nn.LayerNorm, eps=1e-6),
    )
)  # fmt: skip
kernels_here()
with torch.no_grad():
    results = [model(drawn(2, 3, 32, 32, seed=batch)) for batch in range(3)]
    results.append(model.get_last_selfattention(drawn(2, 3, 32, 32, seed=9)))
report(results)
