"""A language model's head and its loss, in float32, with tokens that do not count."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: hidden=bf16[2, 24, 96], labels=i64[2, 24]
class TokenLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm_head = nn.Linear(96, 3072, bias=False, dtype=torch.bfloat16)

    def forward(self, hidden, labels):
        logits = self.lm_head(hidden)
        return F.cross_entropy(logits.view(-1, 3072).float(), labels.view(-1), ignore_index=-100)
