import torch
import torch.nn.functional as F
from torch import nn


# mugraph: tokens=bf16[3, 10, 32], experts=bf16[3, 32, 40], share=bf16[3, 10, 1]
def every_group_alike(tokens, experts, share):
    return F.silu(F.grouped_mm(tokens, experts)) * share


# mugraph: x=bf16[24, 64]
class Experts(nn.Module):
    """Rows are sorted by their expert; where each one's end, `ends` says."""

    def __init__(self, dim: int = 64, hidden: int = 48, count: int = 3):
        super().__init__()
        self.register_buffer("ends", torch.tensor([5, 16, 24], dtype=torch.int32))
        weights = (
            torch.linspace(-1.0, 1.0, count * dim * hidden).sin().bfloat16().view(count, dim, hidden) for _ in range(2)
        )
        self.up, self.gate = (nn.Parameter(w, requires_grad=False) for w in weights)
        down = torch.linspace(-3.0, 1.0, count * dim * hidden).cos().bfloat16().view(count, hidden, dim) * 0.1
        self.down = nn.Parameter(down, requires_grad=False)
        self.gain = nn.Parameter(torch.linspace(0.8, 1.2, dim).bfloat16(), requires_grad=False)

    def forward(self, x):
        h = F.rms_norm(x, (x.shape[-1],), self.gain)
        up = F.grouped_mm(h, self.up, offs=self.ends)
        gate = torch._grouped_mm(h, self.gate, self.ends)
        y = F.grouped_mm(F.silu(gate) * up, self.down, offs=self.ends)
        return x + 0.5 * y
