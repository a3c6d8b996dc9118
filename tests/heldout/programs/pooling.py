import torch
import torch.nn.functional as F
from torch import nn


# mugraph: images=f32[3, 4, 15, 13]
class Features(nn.Module):
    """A convolution stays PyTorch's; what follows reads its result in blocks, and leaves out its last row."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images):
        return F.mish(self.pool(F.hardswish(self.conv(images) - 0.5)))


# mugraph: clip=f32[2, 6, 4, 6, 8]
class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.AvgPool3d(2)
        self.whole = nn.AdaptiveAvgPool3d(1)
        self.shift = nn.Parameter(torch.zeros(6, 1, 1, 1))

    def forward(self, clip):
        return torch.clamp(self.whole(self.down(clip * 0.5) + self.shift), 0, 1)


# mugraph: x=f32[3, 5, 11, 9]
def smoothed(x):
    """Windows that overlap and reach beyond the ends."""
    return torch.sigmoid(F.avg_pool2d(x, 3, stride=2, padding=1)) * 2


# mugraph: x=f32[3, 5, 11, 9]
def peaks(x):
    return F.relu(F.max_pool2d(x, kernel_size=(3, 2), stride=2)).sum(dim=1)


# mugraph: rows=f16[20, 64], w=f16[96, 64]
def largest_pairs(rows, w):
    y = F.max_pool1d(F.linear(rows, w).unsqueeze(1), 2).squeeze(1)
    return y.sum(dim=1) * 0.25


# mugraph: scans=f32[2, 3, 10, 9]
class Stem(nn.Module):
    """As a residual network begins: its windows reach one row and one column beyond the image."""

    def __init__(self):
        super().__init__()
        self.shrink = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)

    def forward(self, scans):
        return F.leaky_relu(self.shrink(scans) - 3.0, 0.1)


# mugraph: signal=f16[3, 4, 29]
def envelope(signal):
    """Windows with holes, as many as there is an element for."""
    top = F.max_pool1d(signal, kernel_size=4, stride=3, padding=2, dilation=3, ceil_mode=True)
    return top * torch.sigmoid(top)


# mugraph: voxels=f32[2, 3, 6, 5, 7]
def hollows(voxels):
    """The least of each window."""
    return -F.max_pool3d(-voxels, (2, 3, 3), stride=(2, 1, 2), padding=(0, 1, 1))
