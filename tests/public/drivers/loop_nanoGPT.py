"""nanoGPT: text of 256 tokens from 16, token by token, as sample.py makes it: every length once."""

import torch
from common import kernels_here, ready, report, tokens
from model import GPT, GPTConfig

config = GPTConfig(block_size=256, vocab_size=256, n_layer=1, n_head=2, n_embd=64, dropout=0.0, bias=True)
model = ready(GPT(config))
kernels_here()
results = {}
with torch.no_grad():
    made = tokens(1, 256, most=256)  # the same tokens, whatever was rounded
    for length in range(16, 257):
        results[f"logits {length}"] = model(made[:, :length])[0]
    results["text"] = model.generate(tokens(1, 16, most=256), 8, top_k=1)
report(results)
