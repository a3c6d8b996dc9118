"""Values are called what the user's code calls them, else what they are."""

from __future__ import annotations

import keyword

from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.regions.value_names import value_names

ATTENTION = """
import math


def rotate(x):
    return torch.cat((-x[..., 4:], x[..., :4]), dim=-1)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-5))


# mugraph: x=f16[2, 8, 16]
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.q_proj, self.k_proj = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x):
        hidden = self.norm(x)
        q = rotate(self.q_proj(hidden))
        scores = q @ self.k_proj(hidden).transpose(-1, -2)
        scores = scores / math.sqrt(8)
        max = torch.softmax(scores, dim=-1)
        return max @ F.silu(self.k_proj(hidden))
"""


def named(trace, text):
    found = trace(text)
    assert found.errors == ()
    (region,) = found.regions
    assert trace_from_json(trace_to_json(found)) == found
    assert trace_from_json(trace_to_json(found)).regions[0].names == region.names
    return region, value_names(region)


def test_names_of_an_attention(trace):
    region, names = named(trace, ATTENTION)
    by_name = {name: value for value, name in names.items()}
    assert len(by_name) == len(names) == len({v for call in region.calls for v in call.outputs} | {
        live.value for live in region.live_ins})  # fmt: skip
    assert not {name for name in names.values() if keyword.iskeyword(name) or name in ("max", "sum", "pow")}
    made_by = {value: call.target for call in region.calls for value in call.outputs}
    # own variables: one bound twice, one that hides a builtin
    assert made_by[by_name["scores"]] == "Tensor.matmul"
    assert made_by[by_name["scores_2"]] in ("Tensor.div", "Tensor.__truediv__")
    assert made_by[by_name["max_"]] == "torch.softmax"
    assert made_by[by_name["q"]] == "torch.cat"
    # a callee's variable, and what has no name anywhere: by module, by operand
    assert "variance" in by_name
    assert made_by[by_name["q_proj"]] == "torch.nn.functional.linear"
    assert {"k_proj", "k_proj_2", "k_proj_t"} <= set(by_name)
    assert names[region.live_outs[0].value] == "out"
    assert not {name for name in by_name if name.lstrip("tv").isdigit()}


def test_results_of_calls_go_by_the_callee(trace):
    text = ATTENTION.replace("hidden = self.norm(x)", "").replace("hidden", "self.norm(x)")
    _, names = named(trace, text)
    assert set(names.values()) >= {"norm", "norm_2", "norm_3"}
