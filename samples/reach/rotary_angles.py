"""Rotary position embeddings from a table of angles, as RoPE modules compute their tables."""

import torch


# mugraph: x=f16[2, 256, 128], positions=f32[256], w=f16[128, 128]
def rotated(x: torch.Tensor, positions: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    frequencies = 10000.0 ** (-torch.arange(0, 64, device=x.device, dtype=torch.float32) / 64)
    angles = positions[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    cos, sin = angles.cos(), angles.sin()
    halves = x.chunk(2, dim=-1)
    turned = torch.cat((-halves[1], halves[0]), dim=-1)
    return (x * cos + turned * sin).to(x.dtype) @ w
