"""Swin-Transformer: classes of batches of images, with windows that are shifted and merged patches."""

import torch
from common import drawn, kernels_here, ready, report
from models.swin_transformer import SwinTransformer

model = ready(
    SwinTransformer(
        img_size=32, patch_size=2, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4, num_classes=10
    )
)
kernels_here()
with torch.no_grad():
    report([model(drawn(2, 3, 32, 32, seed=batch)) for batch in range(3)])
