import torch
from torch import nn


class T5LayerNorm(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=torch.float16))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states


# mugraph: hidden_states=f16[1, 18, 160]
class T5DenseReluDense(nn.Module):
    def __init__(self, d_model=160, d_ff=208):
        super().__init__()
        self.layer_norm = T5LayerNorm(d_model)
        self.wi = nn.Linear(d_model, d_ff, bias=False, dtype=torch.float16)
        self.wo = nn.Linear(d_ff, d_model, bias=False, dtype=torch.float16)

    def forward(self, hidden_states):
        forwarded = self.layer_norm(hidden_states)
        forwarded = self.wo(torch.relu(self.wi(forwarded)))
        return hidden_states + forwarded
