"""vit-pytorch: a ViT and a SimpleViT on batches of images."""

import torch
from common import drawn, kernels_here, ready, report
from vit_pytorch import SimpleViT, ViT

vit = ready(
    ViT(image_size=32, patch_size=8, num_classes=10, dim=64, depth=2, heads=2, mlp_dim=128, dim_head=32, dropout=0.1)
)
simple = ready(
    SimpleViT(image_size=32, patch_size=8, num_classes=10, dim=64, depth=2, heads=2, mlp_dim=128, dim_head=32)
)
kernels_here()
with torch.no_grad():
    report([model(drawn(2, 3, 32, 32, seed=batch)) for batch in range(2) for model in (vit, simple)])
