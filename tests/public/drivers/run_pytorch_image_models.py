"""timm: a ViT, a ConvNeXt and an MLP-Mixer on batches of images."""

import timm
import torch
from common import drawn, kernels_here, ready, report

models = [
    timm.models.vision_transformer.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=64, depth=2, num_heads=2, num_classes=10
    ),
    timm.models.mlp_mixer.MlpMixer(img_size=32, patch_size=8, embed_dim=64, num_blocks=2, num_classes=10),
    timm.models.convnext.ConvNeXt(depths=(1, 1, 1, 1), dims=(32, 64, 64, 128), num_classes=10),
]
models = [ready(model) for model in models]
kernels_here()
with torch.no_grad():
    report([model(drawn(2, 3, 32, 32, seed=batch)) for batch in range(2) for model in models])
