"""llama3: a prompt, then tokens one by one with its key-value cache, in a model-parallel group of one process."""

import torch
from common import EXACT, kernels_here, ready, report, tokens
from fairscale.nn.model_parallel import initialize_model_parallel
from llama.model import ModelArgs, Transformer

torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
initialize_model_parallel(1)
if not torch.cuda.is_available():
    torch.Tensor.cuda = lambda self, *_, **__: self  # its caches are made for a GPU
torch.set_default_dtype(torch.float64 if EXACT else torch.bfloat16)
arguments = ModelArgs(
    dim=128, n_layers=2, n_heads=2, n_kv_heads=1, vocab_size=256, multiple_of=64, max_batch_size=1, max_seq_len=32
)
model = ready(Transformer(arguments))
kernels_here()
results = {"prompt": model(tokens(1, 8, most=256), 0)}
for step in range(5):
    results[f"logits {step}"] = model(tokens(1, 1, most=256, seed=step), 8 + step)
report(results)
