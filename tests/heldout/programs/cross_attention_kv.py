from torch import nn


# mugraph: x=f32[2, 20, 48], context=f32[2, 33, 80]
class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another of a different width."""

    def __init__(self, dim=48, kv_dim=80, heads=3):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(kv_dim, dim, bias=False)
        self.to_v = nn.Linear(kv_dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def split(self, t):
        b, n, c = t.shape
        return t.view(b, n, self.heads, c // self.heads).transpose(1, 2)

    def forward(self, x, context):
        q = self.split(self.to_q(x))
        k = self.split(self.to_k(context))
        v = self.split(self.to_v(context))
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        out = (attn @ v).transpose(1, 2).reshape(x.shape[0], x.shape[1], -1)
        return self.to_out(out)
