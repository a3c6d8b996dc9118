import torch


# mugraph: q=f16[3, 300, 96], k=f16[3, 300, 96], v=f16[3, 300, 96]
def attend(q, k, v):
    scale = q.shape[-1] ** -0.5
    attn = (q * scale) @ k.transpose(-2, -1)
    attn = attn.softmax(dim=-1)
    return attn @ v


# mugraph: q=bf16[1, 2, 70, 48], k=bf16[1, 2, 90, 48], v=bf16[1, 2, 90, 40]
def fused(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.2)
