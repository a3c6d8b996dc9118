"""ViT-B/16: eight images of 224 by 224."""

import torch
from torch import nn

DTYPE = torch.float16


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3, dtype=DTYPE)
        self.proj = nn.Linear(dim, dim, dtype=DTYPE)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, c))


class Mlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.act, self.fc2 = (
            nn.Linear(dim, hidden, dtype=DTYPE),
            nn.GELU(),
            nn.Linear(hidden, dim, dtype=DTYPE),
        )

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(dim, eps=1e-6, dtype=DTYPE) for _ in range(2))
        self.attn, self.mlp = Attention(dim, heads), Mlp(dim, dim * 4)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, dim=768, depth=12, heads=12, patch=16, classes=1000):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch, dtype=DTYPE)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim, dtype=DTYPE))
        self.pos_embed = nn.Parameter(torch.randn(1, (224 // patch) ** 2 + 1, dim, dtype=DTYPE) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim, eps=1e-6, dtype=DTYPE)
        self.head = nn.Linear(dim, classes, dtype=DTYPE)

    def forward(self, images):
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


def get_inputs():
    return [torch.randn(8, 3, 224, 224, dtype=DTYPE)]
