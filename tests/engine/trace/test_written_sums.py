"""`y += b` and the like: of a tensor that the run has made, a write is another name for what is computed, unless what
else shares its memory is read after it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mugraph.trace.regions.replay import replay

from tests.engine.trace.partition import outs

HEAD = """
# mugraph: x=f32[6, 8, 16], w=f32[16, 16], b=f32[16], gate=f32[4]
def {name}(x, w, b, gate):
"""


def named(case: str) -> str:
    return case.replace(" ", "_").replace(",", "")


def written(cases: Mapping[str, tuple[str, ...]]) -> str:
    """A function for each."""
    return "\n".join(
        HEAD.format(name=named(name)) + "".join(f"    {line}\n" for line in lines) for name, lines in cases.items()
    )


WHOLE = {
    "a view is taken later": (
        "y = torch.matmul(x, w)",
        "y += b",
        "y = y.view(6, 8, 4, 4)",
        "return torch.softmax(y, -1)",
    ),
    "of a view": (
        "y = torch.matmul(x, w).view(6, 8, 4, 4).transpose(1, 2)",
        "y.mul_(0.25).add_(gate)",
        "return torch.softmax(y.reshape(6, 4, 32), -1)",
    ),
    "twice, and views between": (
        "y = x @ w",
        "y -= b",
        "first = y.unflatten(-1, (4, 4))",
        "total = first.sum(-1)",
        "y *= 2.0",
        "last = y.unflatten(-1, (4, 4))",
        "return last.softmax(-1) * total[..., None]",
    ),
    "into a part that alone is read": (
        "y = x @ w",
        "low = y[..., :4]",
        "low *= gate",
        "return low.softmax(-1) + low",
    ),
}  # fmt: skip
SEEN = {
    "what it is a view of": (
        "y = x @ w",
        "low = y[..., :4]",
        "low *= gate",
        "return y.softmax(-1)",
    ),
    "a view": (
        "y = x @ w",
        "parts = y.view(6, 8, 4, 4)",
        "y += b",
        "return parts.softmax(-1)",
    ),
    "a view, as a result": (
        "y = x @ w",
        "parts = y.view(6, 8, 4, 4)",
        "y += b",
        "return y.softmax(-1), parts",
    ),
    "a view, after a second write": (
        "y = x @ w",
        "y += b",
        "parts = y.view(6, 8, 4, 4)",
        "kept = parts.exp()",
        "y += b",
        "return (parts * kept).softmax(-1)",
    ),
}  # fmt: skip


def test_it_is_a_part_of_the_region(trace) -> None:
    text = written(WHOLE)
    found = trace(text)
    assert [region.function for region in found.regions] == [named(name) for name in WHOLE]
    for region in found.regions:
        assert outs(region) == ["return"]
        drawn = {
            live.expression: torch.randn(region.values[live.value].shape, dtype=torch.float64)
            for live in region.live_ins
        }
        made = replay(region.calls, {live.value: drawn[live.expression].clone() for live in region.live_ins})
        assert torch.equal(made[region.live_outs[0].value], eager(text, region.function, drawn))


def test_what_others_read_ends_it_with_a_word(trace) -> None:
    found = trace(written(SEEN))
    for name, lines in SEEN.items():
        write = [line for line in lines if "+=" in line or "*=" in line][-1]
        own = [region for region in found.regions if region.function == named(name)]
        assert own
        assert not [region for region in own if write in region.text.split("\n    ")[1:]]
        said = [notice for notice in found.notices if notice.startswith(named(name) + ", line")]
        assert any("writes in place to a tensor that others can see" in notice for notice in said)


def eager(text: str, name: str, drawn: Mapping[str, torch.Tensor]) -> torch.Tensor:
    space: dict[str, object] = {"torch": torch}
    exec(compile(text, name, "exec"), space)
    function = space[name]
    assert callable(function)
    result = function(*(drawn[one].clone() if one in drawn else None for one in ("x", "w", "b", "gate")))
    assert isinstance(result, torch.Tensor)
    return result


ROUTING = """
# mugraph: x=f32[16, 32], w=f32[32, 8], table=i64[16, 2]
def route(x, w, table):
    scores = torch.sigmoid(x @ w)
    left_out = torch.ones_like(scores, dtype=torch.bool).scatter_(1, table, False)
    return scores.masked_fill(left_out, 0.0).softmax(-1)


# mugraph: x=f32[16, 32], w=f32[32, 8]
def counted(x, w):
    scores = torch.sigmoid(x @ w)
    most = torch.bincount(scores.argmax(-1), minlength=8)
    return (scores * most).softmax(-1)
"""


def test_what_is_scattered_into_a_mask_keeps_its_type(trace) -> None:
    """Its indices are of another type, and say nothing of the result's."""
    found = trace(ROUTING)
    routed = [region for region in found.regions if region.function == "route"]
    assert len(routed) == 1
    assert "scatter_" in routed[0].text


def test_a_call_between_two_regions_is_named(trace) -> None:
    found = trace(ROUTING)
    said = [notice for notice in found.notices if notice.startswith("counted, line")]
    assert len(said) == 1
    assert "torch.bincount, which it calls, is no part of one" in said[0]
