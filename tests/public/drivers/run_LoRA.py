"""loralib: layers in training mode, not merged, and merged, as its users evaluate them."""

import loralib as lora
import torch
from common import EXACT, drawn, kernels_here, report
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = lora.Linear(128, 256, r=16, merge_weights=False)
        self.qkv = lora.MergedLinear(256, 384, r=8, enable_lora=[True, False, True], merge_weights=False)
        self.down = lora.Linear(384, 128, r=16)

    def forward(self, x):
        return self.down(torch.relu(self.qkv(torch.relu(self.up(x)))))


torch.manual_seed(0)
model = Model()
for name, tensor in model.named_parameters():
    if "lora_" in name:
        tensor.data.normal_(std=0.1)
lora.mark_only_lora_as_trainable(model)
model.eval()
if EXACT:
    model.double()
kernels_here()
with torch.no_grad():
    report([model(drawn(16, 128, seed=batch)) for batch in range(8)])
