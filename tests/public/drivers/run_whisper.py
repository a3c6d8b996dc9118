"""whisper: audio, and its text token by token with the key-value cache."""

import torch
from common import EXACT, drawn, kernels_here, ready, report, tokens
from torch import nn
from whisper.model import LayerNorm, ModelDimensions, Whisper

dimensions = ModelDimensions(
    n_mels=80, n_audio_ctx=32, n_audio_state=64, n_audio_head=2, n_audio_layer=2,
    n_vocab=256, n_text_ctx=32, n_text_state=64, n_text_head=2, n_text_layer=2,
)  # fmt: skip
if EXACT:
    LayerNorm.forward = nn.LayerNorm.forward  # its own computes in float32
model = ready(Whisper(dimensions))
kernels_here()
results = {}
with torch.no_grad():
    for audio in range(2):
        features = model.encoder(drawn(1, 80, 64, seed=audio))
        results[f"features {audio}"] = features
        cache, hooks = model.install_kv_cache_hooks()
        text = tokens(1, 4, most=256, seed=audio)
        for step in range(4):
            given = text if step == 0 else tokens(1, 1, most=256, seed=10 * audio + step)
            results[f"logits {audio} {step}"] = model.decoder(given, features, kv_cache=cache)
        for hook in hooks:
            hook.remove()
report(results)
