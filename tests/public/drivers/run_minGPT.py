"""minGPT: the loss of batches, and text from a prompt, without a cache."""

import torch
from common import kernels_here, ready, report, tokens
from mingpt.model import GPT

config = GPT.get_default_config()
config.merge_from_dict(dict(model_type=None, n_layer=2, n_head=2, n_embd=64, vocab_size=256, block_size=32))
model = ready(GPT(config))
kernels_here()
results = {}
with torch.no_grad():
    for batch in range(3):
        logits, loss = model(tokens(2, 32, most=256, seed=batch), tokens(2, 32, most=256, seed=batch + 100))
        results[f"loss {batch}"], results[f"logits {batch}"] = loss, logits
    results["text"] = model.generate(tokens(1, 8, most=256), 4, do_sample=False)
report(results)
