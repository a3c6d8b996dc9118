"""Steps of optimisers, with numbers that are others at each step."""

import math

import torch

CALLS = {
    "adam": [(0.01, 1), (0.01, 2), (0.003, 17), (-0.5, 1000)],
    "lion": [(1e-4, 0.1), (3e-4, 0.01), (0.02, 0.0)],
    "averaged": [(0.9,), (0.99,), (0.9999,)],
    "momentum": [(0.1, 0.9, 1), (0.05, 0.8, 2)],
    "clipped": [(1.0,), (0.25,)],
    "Adafactor": [(0.01,), (0.02,), (0.04,)],
}

OWN = {"averaged": [(torch.tensor(0.5),), (1e39,)], "lion": [(float("nan"), 0.1)]}


# mugraph: p=f32[1000], g=f32[1000], m=f32[1000], v=f32[1000], lr=0.01, step=3
@torch.no_grad()
def adam(p, g, m, v, lr, step, beta1=0.9, beta2=0.99, eps=1e-8):
    v.clamp_(min=0.01)
    m.mul_(beta1).add_(g, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    corrected = math.sqrt(1 - beta2**step)
    step_size = lr / (1 - beta1**step)
    p.addcdiv_(m, (v.sqrt() / corrected).add_(eps), value=-step_size)


# mugraph: p=bf16[24, 40], g=bf16[24, 40], m=bf16[24, 40], lr=1e-4, decay=0.1
@torch.no_grad()
def lion(p, g, m, lr, decay):
    update = m * 0.9 + g * (1 - 0.9)
    p.mul_(1 - lr * decay)
    p.add_(update.sign(), alpha=-lr)
    m.lerp_(g, 1 - 0.99)


# mugraph: kept=f32[7, 33], now=f32[7, 33], decay=0.999
@torch.no_grad()
def averaged(kept, now, decay):
    kept.mul_(decay).add_(now, alpha=1 - decay)


# mugraph: p=f32[96], g=f32[96], m=f32[96], lr=0.1, mu=0.9, warm=5
@torch.no_grad()
def momentum(p, g, m, lr, mu, warm):
    rate = lr * 2.0 / warm
    m.mul_(mu).add_(g)
    p.sub_(rate * (g + mu * m))


# mugraph: g=f16[12, 64], most=1.0
def clipped(g, most):
    norm = g.float().square().mean().sqrt()
    return g * (most / (norm + 1.0))


# mugraph: init(rate=0.5)
class Adafactor:
    def __init__(self, rate):
        self.rate = rate
        self.step = 0

    # mugraph: p=f32[64, 8], g=f32[64, 8], lr=0.01
    @torch.no_grad()
    def update(self, p, g, lr):
        self.step += 1
        scale = lr / self.step**0.5
        return p - scale * g / (1.0 + g.abs()) + self.rate * g * g
