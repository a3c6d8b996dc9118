"""No region goes across a write that it does not have: whoever owns the memory, however it is written to, and whatever
is said of gradients around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.region import Trace

MODES = ("", "@torch.no_grad()\n", "@torch.inference_mode()\n")
OWNERS = ("OURS", "INFERRED", "HELD.cache", "PART", "x", "made")
WRITES = (
    "{m}.view(8, 4).add_(0.5)",
    "{m}.detach().mul_(0.5)",
    "{m}.data.mul_(0.5)",
    "{m}[1:] += 0.25",
    "{m}.t()[0] = 0.5",
    "{m}.unbind(0)[1].zero_()",
    "torch.mul({m}, 0.5, out={m})",
    "torch.tanh(x, out={m}[:])",
    "F.relu({m}.view(-1), inplace=True)",
    "torch._foreach_add_([{m}.view(-1)], 1.0)",
    "{m}.index_put_((torch.tensor([0, 2]),), x[:2] * 2)",
    "nn.init.zeros_({m}[:, :3])",
    "{m}.as_strided((4,), (9,)).fill_(0.5)",
    "written({m})",
    "WHOLE.mul_(0.5)",
    "WHOLE.view(-1)[40:].zero_()",
)
HEAD = """
def written(tensor):
    part = tensor[..., 2:]
    part.mul_(0.5)


class Held:
    def __init__(self):
        self.cache = torch.zeros(4, 8)


OURS = torch.full((4, 8), 0.5)
with torch.inference_mode():
    INFERRED = torch.full((4, 8), 0.5)
HELD = Held()
WHOLE = torch.full((2, 4, 8), 0.5)
PART = WHOLE[1]
"""
FUNCTION = """
# mugraph: x=f32[4, 8], y=f32[4, 8]
{mode}def f{number}(x, y):
    made = torch.sigmoid(x)
    early = torch.tanh(y) * {m}
    {write}
    return torch.softmax(y * {m}, -1) + early
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("owner", OWNERS)
def test_none_goes_across(owner: str, mode: str, trace: Callable[..., Trace]) -> None:
    written = [one.format(m=owner) for one in WRITES]
    functions = [
        FUNCTION.format(mode=mode, number=number, m=owner, write=write) for number, write in enumerate(written)
    ]
    found = trace(HEAD + "\n".join(functions))
    across = {
        region.function: region.text
        for region in found.regions
        if "tanh(y)" in region.text
        and "softmax" in region.text
        and not any(call.target.endswith("_") or "setitem" in call.target for call in region.calls)
    }
    assert not across
    assert len({region.function for region in found.regions}) == len(written)
