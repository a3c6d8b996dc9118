"""Four decoder layers of Llama 3 8B: one token, with 4,095 in the caches. They are joined by torch.cat and returned."""

from layers import Layer
from torch import nn


# mugraph: x=f16[1, 1, 4096], cos=f16[1, 128], sin=f16[1, 128]
# mugraph: keys=f16[4, 1, 8, 4095, 128], values=f16[4, 1, 8, 4095, 128]
class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(14336, norms=False) for _ in range(4))

    def forward(self, x, cos, sin, keys, values):
        joined_keys, joined_values = [], []
        for i, layer in enumerate(self.layers):
            x, new_keys, new_values = layer.step_joined(x, cos, sin, keys[i], values[i])
            joined_keys.append(new_keys)
            joined_values.append(new_values)
        return x, joined_keys, joined_values
