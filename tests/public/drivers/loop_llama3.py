"""llama3: prompts of several lengths, then 48 tokens one by one, in a model-parallel group of one process."""

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
    dim=128, n_layers=2, n_heads=2, n_kv_heads=1, vocab_size=256, multiple_of=64, max_batch_size=1, max_seq_len=64
)
model = ready(Transformer(arguments))
kernels_here()
results = {}
for length in (4, 7, 12, 15):
    results[f"prompt {length}"] = model(tokens(1, length, most=256), 0)
for step in range(48):
    results[f"logits {step}"] = model(tokens(1, 1, most=256, seed=step), 15 + step)
report(results)
