import torch


# mugraph: a=f16[40, 64], b=f16[64, 48], c=f16[48, 72], d=f16[72, 32]
def chain(a, b, c, d):
    ab = a @ b
    abc = ab @ c
    return abc @ d


# mugraph: m=f32[3, 24, 40], n=f32[3, 40, 16]
def batched_then_scaled(m, n):
    product = torch.matmul(m, n)
    return product.mul(0.25).add(1.0)
