"""Chains of two matrix products, G1 to G12 of MCFuser (Table II): E = (A B) D, A is m × k, B k × n, D n × h."""

import torch


# mugraph: a=f16[512, 64], b=f16[64, 256], d=f16[256, 64]
def g1(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 64], b=f16[64, 256], d=f16[256, 128]
def g2(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 64], b=f16[64, 256], d=f16[256, 256]
def g3(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 256], b=f16[256, 512], d=f16[512, 256]
def g4(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 512], b=f16[512, 512], d=f16[512, 256]
def g5(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 1024], b=f16[1024, 512], d=f16[512, 256]
def g6(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[512, 128], b=f16[128, 512], d=f16[512, 128]
def g7(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[1024, 128], b=f16[128, 512], d=f16[512, 128]
def g8(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[2048, 128], b=f16[128, 512], d=f16[512, 128]
def g9(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[1024, 128], b=f16[128, 1024], d=f16[1024, 128]
def g10(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return (a @ b) @ d


# mugraph: a=f16[4, 1024, 128], b=f16[4, 128, 1024], d=f16[4, 1024, 128]
def g11(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return torch.bmm(torch.bmm(a, b), d)


# mugraph: a=f16[8, 1024, 128], b=f16[8, 128, 1024], d=f16[8, 1024, 128]
def g12(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return torch.bmm(torch.bmm(a, b), d)
