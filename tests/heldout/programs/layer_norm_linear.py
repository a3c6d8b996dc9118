import torch
import torch.nn.functional as F
from torch import nn


# mugraph: tokens=f16[20, 192]
class NormThenProject(nn.Module):
    def __init__(self, width=192, out=160):
        super().__init__()
        self.ln = nn.LayerNorm(width, dtype=torch.float16)
        self.proj = nn.Linear(width, out, dtype=torch.float16)

    def forward(self, tokens):
        return self.proj(self.ln(tokens))


# mugraph: h=f32[12, 96], g=f32[96], b=f32[96], w=f32[112, 96], c=f32[112]
def functional_form(h, g, b, w, c):
    normed = F.layer_norm(h, (96,), g, b, 1e-5)
    return F.linear(normed, w, c)
