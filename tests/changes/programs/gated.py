"""A gated MLP behind a norm: its parts are classes, methods and functions of two files."""

from torch import nn

from gated_parts import RMSNorm, gate

RESIDUAL = 0.5


def project(layer, x):
    return layer(x)


# mugraph: x=f32[6, 32]
class Gated(nn.Module):
    scale = 2.0

    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    @property
    def strength(self):
        return self.scale / 4

    def mixed(self, x, h):
        return x * RESIDUAL + h * self.strength

    def forward(self, x):
        n = self.norm(x)
        h = gate(project(self.gate, n), self.up(n))
        return self.mixed(x, self.down(h))
