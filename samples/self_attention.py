"""Self-attention modules S1 to S9 of MCFuser (Table III): heads, query rows, key rows, head dimension."""

import math

import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    probabilities = torch.softmax(scores, dim=-1)
    return torch.bmm(probabilities, v)


# mugraph: q=f16[8, 512, 64], k=f16[8, 512, 64], v=f16[8, 512, 64]
def s1(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[12, 512, 64], k=f16[12, 512, 64], v=f16[12, 512, 64]
def s2(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[16, 512, 64], k=f16[16, 512, 64], v=f16[16, 512, 64]
def s3(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[12, 256, 64], k=f16[12, 256, 64], v=f16[12, 256, 64]
def s4(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[16, 256, 64], k=f16[16, 256, 64], v=f16[16, 256, 64]
def s5(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[16, 256, 80], k=f16[16, 256, 80], v=f16[16, 256, 80]
def s6(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[1, 512, 64], k=f16[1, 256, 64], v=f16[1, 256, 64]
def s7(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[1, 768, 64], k=f16[1, 384, 64], v=f16[1, 384, 64]
def s8(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


# mugraph: q=f16[1, 1024, 64], k=f16[1, 512, 64], v=f16[1, 512, 64]
def s9(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)
