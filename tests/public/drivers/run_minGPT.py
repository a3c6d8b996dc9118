"""minGPT: the loss of batches, and text from a prompt, without a cache."""

import torch
from common import kernels_here, ready, report, tokens
from mingpt.model import GPT

config = GPT.get_default_config()
config.model_type, config.n_layer, config.n_head, config.n_embd = None, 2, 2, 64
config.vocab_size, config.block_size = 256, 32
model = ready(GPT(config))
kernels_here()
results = {}
with torch.no_grad():
    for batch in range(3):
        logits, loss = model(tokens(2, 32, most=256, seed=batch), tokens(2, 32, most=256, seed=batch + 100))
        results[f"loss {batch}"], results[f"logits {batch}"] = loss, logits
    results["text"] = model.generate(tokens(1, 8, most=256), 4, do_sample=False)
report(results)
