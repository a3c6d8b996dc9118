"""A vocabulary that no power of two divides."""

import torch.nn.functional as F


# mugraph: x=f16[20, 64], wte=f16[4623, 64], targets=i64[20]
def odd_vocabulary(x, wte, targets):
    return F.cross_entropy(x @ wte.t(), targets, ignore_index=-1, reduction="sum")
