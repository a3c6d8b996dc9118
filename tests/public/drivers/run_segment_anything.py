"""segment-anything: masks of images at points."""

from functools import partial

import torch
from common import drawn, kernels_here, ready, report
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, TwoWayTransformer
from torch import nn

torch.manual_seed(0)  # of what stands for points
encoder = ImageEncoderViT(
    img_size=64, patch_size=8, embed_dim=64, depth=2, num_heads=2, out_chans=32, use_rel_pos=True,
    norm_layer=partial(nn.LayerNorm, eps=1e-6), window_size=3, global_attn_indexes=(1,),
)  # fmt: skip
prompts = PromptEncoder(embed_dim=32, image_embedding_size=(8, 8), input_image_size=(64, 64), mask_in_chans=8)
transformer = TwoWayTransformer(depth=2, embedding_dim=32, mlp_dim=64, num_heads=2)
decoder = MaskDecoder(transformer_dim=32, transformer=transformer, iou_head_hidden_dim=32)
encoder, prompts, decoder = (ready(model) for model in (encoder, prompts, decoder))
prompts.float()  # of points, which are in float32
kernels_here()
results = {}
with torch.no_grad():
    for image in range(2):
        features = encoder(drawn(1, 3, 64, 64, seed=image))
        results[f"features {image}"] = features
        for point in range(2):
            points = drawn(1, 1, 2, seed=10 * image + point).float().abs() * 20, torch.ones(1, 1, dtype=torch.int)
            sparse, dense = prompts(points=points, boxes=None, masks=None)
            masks, quality = decoder(
                image_embeddings=features, image_pe=prompts.get_dense_pe().to(features.dtype), multimask_output=True,
                sparse_prompt_embeddings=sparse.to(features.dtype), dense_prompt_embeddings=dense.to(features.dtype),
            )  # fmt: skip
            results[f"masks {image} {point}"], results[f"quality {image} {point}"] = masks, quality
report(results)
