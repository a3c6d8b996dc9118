"""gpt-fast: prefill and decoding with its key-value cache, as generate.py does."""

import torch
from common import EXACT, kernels_here, ready, report, tokens
from generate import decode_one_token, prefill
from model import ModelArgs, Transformer

config = ModelArgs(block_size=64, vocab_size=256, n_layer=2, n_head=2, dim=128, n_local_heads=1, intermediate_size=256)
model = ready(Transformer(config)).to(torch.float64 if EXACT else torch.bfloat16)
with torch.device("cpu"):
    model.setup_caches(max_batch_size=1, max_seq_length=32)
kernels_here()
results = {}
prompt = tokens(1, 8, most=256)
with torch.no_grad():
    prefill(model, prompt, torch.arange(8), temperature=0.8, top_k=200)
    for step in range(6):  # the same tokens, whatever was rounded
        token = tokens(1, 1, most=256, seed=step)
        _, results[f"probabilities {step}"] = decode_one_token(
            model, token, torch.tensor([8 + step]), temperature=0.8, top_k=200
        )
report(results)
