import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=bf16[3, 48], picks=i64[3, 2]
class ChosenExperts(nn.Module):
    """The experts that a router has chosen, of weights that lie in one tensor."""

    def __init__(self, experts=24, dim=48, hidden=80):
        super().__init__()
        self.gate = nn.Parameter(torch.empty(experts, hidden, dim, dtype=torch.bfloat16))
        self.up = nn.Parameter(torch.empty(experts, hidden, dim, dtype=torch.bfloat16))
        self.down = nn.Parameter(torch.empty(experts, dim, hidden, dtype=torch.bfloat16))

    def forward(self, x, picks):
        gate, up, down = self.gate[picks], self.up[picks], self.down[picks]
        hidden = F.silu(torch.einsum("ni,nkoi->nko", x, gate)) * torch.einsum("ni,nkoi->nko", x, up)
        return torch.einsum("nko,nkio->nki", hidden, down)


# mugraph: token=f16[1, 40], which=i64[2], share=f16[2]
class OneToken(nn.Module):
    """A single token, whose experts are taken by index_select; what they give is weighed and added."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(32, 40, 72, dtype=torch.float16))

    def forward(self, token, which, share):
        w = self.w.index_select(0, which.flatten()).view(2, 40, 72)
        return (torch.matmul(token, w).squeeze(1) * share[:, None]).sum(0)


# mugraph: h=f16[6, 36], a=f16[26, 36, 8], adapter=i32[6]
def low_rank_of_each(h, a, adapter):
    """A request has an adapter of its own."""
    return torch.bmm(h.unsqueeze(1), a[adapter]).squeeze(1)


# mugraph: h=f32[2, 24], table=f32[25, 20, 24], at=i64[2, 3]
def through_an_embedding(h, table, at):
    rows = F.embedding(at, table.flatten(1)).view(2, 3, 20, 24)
    return torch.tanh(torch.einsum("bd,bsod->bso", h, rows))


# mugraph: q=f16[3, 32], pages=f16[2, 24, 4, 32], block_table=i64[3, 5]
def scores_of_pages(q, pages, block_table):
    """Keys that lie in pages, of which the first half of a cache has some."""
    keys = pages[0][block_table]
    return torch.einsum("rd,rpsd->rps", q, keys) * 0.17


# mugraph: x=f16[4, 33], columns=f16[33, 24, 10], slot=i64[1]
def along_another_dimension(x, columns, slot):
    return x @ columns[:, slot].squeeze(1)
