"""Parts that keep their precision where the program around them runs under autocast: it is turned off there."""

import torch
from torch import nn


# mugraph: x=f32[2, 45, 48], positions=i64[2, 45]
class Angles(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.Buffer(torch.logspace(0, -2, 20))
        self.gain = 0.75

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rates = self.rates[None, :, None].float().expand(positions.shape[0], -1, 1)
        rows = positions[:, None, :].float() / 64
        kind = x.device.type if isinstance(x.device.type, str) and x.device.type != "mps" else "cpu"
        with torch.autocast(device_type=kind, enabled=False):
            angles = (rates @ rows).transpose(1, 2)
            both = torch.cat((angles, angles), dim=-1)
            cos, sin = both.cos() * self.gain, both.sin() * self.gain
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


def routed(states: torch.Tensor, router: torch.Tensor, kind: str) -> torch.Tensor:
    with torch.autocast(kind, enabled=False):
        return torch.softmax(states.float() @ router.mT, dim=-1)


# mugraph: states=f32[70, 52], router=f32[11, 52]
def chances(states: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    states = states * torch.rsqrt(states.square().mean(-1, keepdim=True) + 1e-5)
    return routed(states, router, states.device.type)
