import torch
import torch.nn.functional as F


# mugraph: x=f32[37, 90], y=f32[37, 90], mask=bool[37, 90]
def either(x, y, mask):
    return torch.where(mask, x * 2, y) * torch.sigmoid(x)


# mugraph: x=f16[21, 70], drop=bool[70]
def mean_of_kept(x, drop):
    return F.gelu(x).masked_fill(drop, 0.0).mean(dim=1) * 1.25


# mugraph: x=f32[30, 48], w=f32[48, 40], kept=bool[30, 48], rows=bool[30, 1]
def dropped_product(x, w, kept, rows):
    return torch.where(~kept | rows, 0.0, x * 1.25) @ w


# mugraph: counts=f32[33, 40], y=f32[33, 40]
def where_there_are_any(counts, y):
    return torch.exp(y * 0.5) * counts.to(torch.bool) + y
