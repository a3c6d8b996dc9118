"""nanoGPT: the loss as train.py estimates it, at one size; and text, which grows with each token."""

import torch
from common import kernels_here, ready, report, tokens
from model import GPT, GPTConfig

config = GPTConfig(block_size=32, vocab_size=256, n_layer=2, n_head=2, n_embd=64, dropout=0.0, bias=True)
model = ready(GPT(config))
kernels_here()
results = {}
with torch.no_grad():
    for batch in range(4):
        x, y = tokens(2, 32, most=256, seed=batch), tokens(2, 32, most=256, seed=batch + 100)
        logits, loss = model(x, y)
        results[f"loss {batch}"], results[f"logits {batch}"] = loss, logits
results["text"] = model.generate(tokens(1, 8, most=256), 4, top_k=1)
report(results)
