"""A linear layer with weights of four bits, two to a byte, and a scale for each group of 128 inputs."""

import torch
import torch.nn.functional as F

GROUP = 128


def dequantised(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(packed.shape[0], -1, GROUP)
    return ((codes.to(scales.dtype) - 8) * scales[:, :, None]).flatten(1)


# mugraph: x=f16[1, 4096], packed=u8[14336, 2048], scales=f16[14336, 32]
def one_row(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(packed, scales))


# mugraph: x=f16[8, 4096], packed=u8[14336, 2048], scales=f16[14336, 32]
def eight_rows(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(packed, scales))


# mugraph: x=f16[64, 4096], packed=u8[14336, 2048], scales=f16[14336, 32]
def many_rows(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return F.linear(x, dequantised(packed, scales))
