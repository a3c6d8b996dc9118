"""BERT base: eight sentences of up to 128 tokens, the padding masked."""

import math

import torch
from torch import nn

DTYPE = torch.float16
HIDDEN, HEADS, INNER, LAYERS, VOCABULARY = 768, 12, 3072, 12, 30522


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN, dtype=DTYPE) for _ in range(3))
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(*x.shape[:2], HEADS, -1).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        q, k, v = (self.split(proj(hidden_states)) for proj in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS)
        probs = self.dropout(nn.functional.softmax(scores + attention_mask, dim=-1))
        context = torch.matmul(probs, v).permute(0, 2, 1, 3).contiguous()
        return context.view(*context.shape[:2], HIDDEN)


class Output(nn.Module):
    """A projection, the residual, and the norm after both."""

    def __init__(self, inputs):
        super().__init__()
        self.dense = nn.Linear(inputs, HIDDEN, dtype=DTYPE)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12, dtype=DTYPE)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden_states, input_tensor):
        return self.LayerNorm(self.dropout(self.dense(hidden_states)) + input_tensor)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.attention_output = SelfAttention(), Output(HIDDEN)
        self.intermediate, self.output = nn.Linear(HIDDEN, INNER, dtype=DTYPE), Output(INNER)

    def forward(self, hidden_states, attention_mask):
        x = self.attention_output(self.attention(hidden_states, attention_mask), hidden_states)
        return self.output(nn.functional.gelu(self.intermediate(x)), x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=0, dtype=DTYPE)
        self.position_embeddings = nn.Embedding(512, HIDDEN, dtype=DTYPE)
        self.token_type_embeddings = nn.Embedding(2, HIDDEN, dtype=DTYPE)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12, dtype=DTYPE)
        self.encoder = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(HIDDEN, HIDDEN, dtype=DTYPE)
        self.eval()

    def forward(self, input_ids, token_type_ids, mask):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x = self.LayerNorm(x + self.position_embeddings(places))
        extended = (1.0 - mask[:, None, None, :].to(DTYPE)) * -10000.0
        for layer in self.encoder:
            x = layer(x, extended)
        return torch.tanh(self.pooler(x[:, 0]))


def get_inputs():
    lengths = torch.tensor([128, 120, 113, 97, 90, 64, 51, 33])
    mask = (torch.arange(128)[None] < lengths[:, None]).long()
    ids = torch.randint(1, VOCABULARY, (8, 128)) * mask
    return [ids, torch.zeros(8, 128, dtype=torch.long), mask]
