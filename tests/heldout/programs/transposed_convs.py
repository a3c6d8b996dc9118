"""Convolutions whose results kernels go on with, or are part of: transposed, in three dimensions, of one tap."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[3, 6, 9, 7]
class Upsampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(6, 10, 3, stride=2, padding=1, output_padding=1)
        self.scale = nn.Parameter(torch.randn(10, 1, 1))

    def forward(self, x):
        y = self.up(x)
        return torch.tanh(y * self.scale) + 0.5 * y


# mugraph: x=f32[2, 3, 5, 9, 8]
class Volume(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv3d(3, 8, 3, padding=1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return torch.softmax(self.act(self.first(x) * 1.5), dim=1)


# mugraph: x=f16[2, 8, 33], w=f16[8, 6, 4], bias=f16[6], gate=f16[2, 6, 36]
def gated_signal(x, w, bias, gate):
    up = F.conv_transpose1d(x, w, bias)
    return F.silu(gate) * up


# mugraph: x=f32[2, 3, 5, 9, 8]
class Squeezed(nn.Module):
    """A reduction over what the convolution leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 8, (1, 3, 3), groups=1)

    def forward(self, x):
        y = F.leaky_relu(self.conv(x), 0.1)
        return y.sum(dim=(2, 3, 4)) + y.amax(dim=(2, 3, 4))


# mugraph: z=f32[2, 12, 6, 5]
class Decoder(nn.Module):
    """Twice as large in groups, mixed by one tap, and what was there before added."""

    def __init__(self) -> None:
        super().__init__()
        self.larger = nn.ConvTranspose2d(12, 8, 4, stride=2, padding=1, groups=4, bias=False)
        self.mix = nn.Conv2d(8, 12, 1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, z):
        h = F.mish(self.norm(self.larger(z)))
        return torch.sigmoid(self.mix(h)) + F.interpolate(z, scale_factor=2)


# mugraph: clip=f32[2, 4, 3, 5, 4], kernel=f32[4, 3, 2, 3, 3], shift=f32[3]
def unfolded(clip, kernel, shift):
    frames = F.conv_transpose3d(clip, kernel, shift, stride=(1, 2, 2), padding=(0, 1, 1), output_padding=(0, 1, 1))
    return frames * torch.tanh(F.softplus(frames))
