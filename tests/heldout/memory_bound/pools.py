"""Windows of images and volumes, of values that are computed and of values that are read."""

import torch
import torch.nn.functional as F


# mugraph: x=f32[128, 64, 126, 126]
def halved(x):
    return torch.tanh(F.avg_pool2d(torch.tanh(x - 0.5) - 0.2, 2))


# mugraph: x=f32[64, 32, 24, 48, 48]
def two_stages(x):
    return F.max_pool3d(F.max_pool3d(torch.softmax(x, dim=1), 2), 2)


# mugraph: x=f32[16, 64, 127, 131]
def odd(x):
    return F.hardswish(F.max_pool2d(x * 2, 3))


# mugraph: x=f32[16, 64, 24, 48, 48], b=f32[64, 1, 1, 1]
def whole(x, b):
    return torch.clamp(F.adaptive_avg_pool3d(F.max_pool3d(x * 0.5, 2), 1) + b, 0, 1)


# mugraph: x=f32[16, 64, 128, 128]
def overlapping(x):
    return F.relu(F.avg_pool2d(x, 3, 2, 1) * 2)


# mugraph: x=f32[64, 192, 256, 250]
def around(x):
    return F.hardswish(F.max_pool2d(x, 4, 1, 1, 1))


# mugraph: x=f32[16, 32, 64, 64, 64]
def around_with_holes(x):
    return F.max_pool3d(x, 3, 2, 1, dilation=3) + 1
