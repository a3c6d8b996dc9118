"""gpt-fast: prompts of several lengths, then 48 tokens one by one, as generate.py does."""

import torch
from common import EXACT, kernels_here, ready, report, tokens
from generate import decode_one_token, prefill
from model import ModelArgs, Transformer

config = ModelArgs(block_size=64, vocab_size=256, n_layer=2, n_head=2, dim=128, n_local_heads=1, intermediate_size=256)
model = ready(Transformer(config)).to(torch.float64 if EXACT else torch.bfloat16)
with torch.device("cpu"):
    model.setup_caches(max_batch_size=1, max_seq_length=64)
kernels_here()
results = {}
with torch.no_grad():
    for length in (4, 7, 12, 15):
        prefill(model, tokens(1, length, most=256), torch.arange(length), temperature=0.8, top_k=200)
    for step in range(48):  # the same tokens, whatever was rounded
        token = tokens(1, 1, most=256, seed=step)
        _, results[f"probabilities {step}"] = decode_one_token(
            model, token, torch.tensor([15 + step]), temperature=0.8, top_k=200
        )
report(results)
