"""Norms of images over groups and places, and losses: hinge, divergence, of classes, of classes of a linear layer."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: img=f32[2, 6, 11, 10]
class Groups(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(3, 6)

    def forward(self, img):
        return F.relu(self.norm(img))


# mugraph: img=f32[3, 4, 9, 12]
def each_channel(img):
    return F.instance_norm(img, eps=1e-4) + img


# mugraph: block=f32[5, 7, 12]
def of_all(block):
    return block / block.norm()


# mugraph: score=f32[70], side=f32[70]
def margin(score, side):
    return torch.mean(torch.clamp(1 - score * side, min=0))


# mugraph: raw=f32[14, 20], goal=f32[14, 20]
def divergence(raw, goal):
    return F.kl_div(F.log_softmax(raw, dim=1), torch.softmax(goal, dim=1), reduction="batchmean")


# mugraph: z=f32[26, 33], label=i64[26]
def of_classes(z, label):
    return F.cross_entropy(z * 1.5, label)


# mugraph: h=f32[24, 32], table=f32[48, 32], label=i64[24]
def of_a_head(h, table, label):
    return F.cross_entropy(F.linear(h, table), label)


# mugraph: base=f32[3, 10, 14], left=f32[3, 10, 16], right=f32[3, 16, 14]
def added_in_batches(base, left, right):
    return torch.relu(torch.baddbmm(base, left, right, beta=0.5)) + 0.1


# mugraph: logits=bf16[96, 500], labels=i64[96], weight=f32[500]
def smoothed(logits, labels, weight):
    return F.cross_entropy(logits.float(), labels, label_smoothing=0.1), F.cross_entropy(
        logits.float(), labels, weight, label_smoothing=0.2
    )
