"""DeepSeek-V3: a prompt, then tokens one by one with its compressed cache; one dense layer, one of experts."""

import torch
from common import EXACT, kernels_here, ready, report, tokens
from model import ModelArgs, Transformer

torch.set_default_dtype(torch.bfloat16)
arguments = ModelArgs(
    max_batch_size=2, max_seq_len=32, vocab_size=256, dim=128, inter_dim=256, moe_inter_dim=64, n_layers=2,
    n_dense_layers=1, n_heads=2, n_routed_experts=4, n_shared_experts=1, n_activated_experts=2, q_lora_rank=64,
    kv_lora_rank=64, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32,
)  # fmt: skip
model = ready(Transformer(arguments))
for layer in model.layers[1:]:  # the same experts, whatever was rounded
    layer.ffn.gate.weight.data[2:] = layer.ffn.gate.weight.data[:2] - 1.0
if EXACT:
    model.double()
kernels_here()
results = {"prompt": model(tokens(2, 8, most=256), 0)}
for step in range(5):
    results[f"logits {step}"] = model(tokens(2, 1, most=256, seed=step), 8 + step)
report(results)
