"""What integers a region may be measured with."""

from __future__ import annotations

from pathlib import Path

from mugraph.edit.module.index_limits import index_limit
from mugraph.trace.tracer import trace_file

HEADER = "import torch\nimport torch.nn.functional as F\n"
FUNCTION = "# mugraph: i=i64[5], w=f32[40, 16], v=f32[16, 8]\ndef {name}(i, w, v):\n    {line}\n"
CASES = {
    "embedding": ("return F.embedding(i, w) @ v", 40),
    "an embedding of a view": ("return F.embedding(i.view(5, 1), w).squeeze(1) @ v", 40),
    "rows": ("return w[i] @ v", 40),
    "columns": ("return w[:, i] @ w[:, i].T", 16),
    "columns after an ellipsis": ("return w[..., i] @ w[..., i].T", 16),
    "two uses": ("return (w[i] @ v) * v[i]", 16),
    "index_select": ("return torch.index_select(w, 1, i).T @ w", 16),
    "compared": ("return (w @ v) * (i != 3).float().sum()", 100),
    "fields of bits": ("return (w @ v) * ((i >> 4) & 0xF).float().sum()", 1 << 31),
    "fields of fewer bits": ("return (w @ v) * ((i.view(5, 1) >> 4).to(torch.int8) & 3).float().sum()", 1 << 31),
    "a shift by it": ("return (w @ v) * ((torch.ones(5, dtype=torch.int64) >> i) & 1).float().sum()", 32),
    "a place that is shifted": ("return w[i >> 4] @ v", None),
    "no use that is known": ("return (w @ v) * torch.bincount(i, minlength=8)", None),
    "computed with": ("return w[i + 1] @ v", None),
}


def test_index_limits(tmp_path: Path) -> None:
    names = {case.replace(" ", "_"): case for case in CASES}
    path = tmp_path / "program.py"
    path.write_text("\n\n".join([HEADER, *(FUNCTION.format(name=n, line=CASES[c][0]) for n, c in names.items())]))
    trace = trace_file(path)
    assert trace.errors == ()
    met: set[str] = set()
    for region in trace.regions:
        case = names[region.function]
        for live in region.live_ins:
            if region.values[live.value].dtype == "i64":
                assert index_limit(region, live.value) == CASES[case][1], case
                met.add(case)
    assert met >= {case for case, (_, limit) in CASES.items() if limit is not None}
    assert met - {case for case, (_, limit) in CASES.items() if limit is not None}, "one that says nothing"


BYTES = """
# mugraph: x=f16[5, 64], packed=u8[48, 32]
def nibbles(x, packed):
    codes = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(48, 64)
    return F.linear(x, codes.to(x.dtype) - 8)


# mugraph: x=f16[5, 64], packed=u8[48, 64], w=f16[16, 64]
def places(x, packed, w):
    return F.linear(x, w[(packed >> 4).long()].sum(1))
"""


def test_bytes_that_are_shifted_may_be_any(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEADER + BYTES)
    limits = {
        region.function: index_limit(region, live.value)
        for region in trace_file(path).regions
        for live in region.live_ins
        if live.expression == "packed"
    }
    assert limits["nibbles"] == 1 << 31
    assert limits.get("places") is None


PAIRS = """
# mugraph: rows=i64[24], columns=i32[24], w=f32[40, 16], x=f32[24, 8]
def weighted(rows, columns, w, x):
    return F.silu(w[rows, columns, None] * x)
"""


def test_indices_beside_others(tmp_path: Path) -> None:
    """As of the weights of routed tokens."""
    path = tmp_path / "program.py"
    path.write_text(HEADER + PAIRS)
    [region] = trace_file(path).regions
    limits = {live.expression: index_limit(region, live.value) for live in region.live_ins}
    assert (limits["rows"], limits["columns"]) == (40, 16)
