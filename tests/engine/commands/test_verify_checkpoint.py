"""`mugraph verify --ugraph` with a checkpoint of Mirage's: a verdict for each of its graphs."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from mugraph.cli import run

from tests.support.mirage import PHI, Json, attention, gated, rmsnorm_linear

MODULE = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[4, 32], w=f16[32, 12]
def rmsnorm(x, w):
    return (x / x.pow(2).mean(-1, keepdim=True).sqrt()) @ w


# mugraph: x=bf16[4, 16], a=bf16[16, 8], b=bf16[16, 8]
def gated(x, a, b):
    return F.silu(x @ a) * (x @ b)


# mugraph: q=f16[2, 8, 4], k=f16[2, 4, 32], v=f16[2, 32, 4]
def attention(q, k, v):
    e = torch.exp(q @ k)
    return (e / e.sum(-1, keepdim=True)) @ v
"""


def verdicts(
    function: str, graphs: list[list[Json]], folder: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[int, list[Json]]:
    (folder / "model.py").write_text(MODULE)
    (folder / "checkpoint.json").write_text(json.dumps(graphs))
    command = ["verify", "--ugraph", str(folder / "checkpoint.json"), f"{folder / 'model.py'}:{function}", "--json"]
    status = run(command)
    return status, json.loads(capfd.readouterr().out)["graphs"]


@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        ("rmsnorm", [rmsnorm_linear(), rmsnorm_linear(loop=1), rmsnorm_linear("tb_accum_nored_op", loop=8)]),
        ("gated", [gated()]),
        ("attention", [attention((4, 4)), attention((2, 8)), attention((8, 2)), attention((4, 1))]),
    ],
)
def test_right_graphs(
    function: str, graphs: list[list[Json]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, found = verdicts(function, graphs, tmp_path, capfd)
    assert [verdict["reason"] for verdict in found] == [None] * len(graphs)
    assert status == 0


ALTERED = [
    ("rmsnorm", rmsnorm_linear, "tb_div_op", {"op_type": "tb_mul_op"}),
    ("rmsnorm", rmsnorm_linear, "tb_forloop_accum_red_ld_rms_op", {"op_type": "tb_forloop_accum_red_ld_mean_op"}),
    ("rmsnorm", rmsnorm_linear, "tb_input_op", {"input_map": PHI, "forloop_dim": -1}),
    ("rmsnorm", rmsnorm_linear, "tb_output_op", {"output_map": PHI}),
    ("gated", gated, "kn_mul_op", {"op_type": "kn_add_op"}),
    ("gated", gated, "tb_silu_op", {"op_type": "tb_sigmoid_op"}),
    ("attention", lambda: attention((4, 4)), "tb_exp_op", {"op_type": "tb_square_op"}),
    ("attention", lambda: attention((4, 4)), "tb_div_op", {"op_type": "tb_sub_op"}),
]


@pytest.mark.parametrize(("function", "write", "op_type", "change"), ALTERED)
def test_one_map_or_operator_altered(
    function: str, write, op_type: str, change: Json, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    right, altered = write(), copy.deepcopy(write())
    inside = [one for operator in altered for one in operator.get("bgraph", {}).get("operators", ())]
    next(one for one in (*altered, *inside) if one["op_type"] == op_type).update(change)
    status, found = verdicts(function, [right, altered], tmp_path, capfd)
    assert [verdict["passed"] for verdict in found] == [True, False]
    assert found[1]["reason"]
    assert status == 1


def test_the_order_of_two_iterations_parts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The keys of the one and the values of the other: tiles have the same sizes, and the graph is wrong."""
    graph = copy.deepcopy(attention((2, 4)))
    block = graph[3]["bgraph"]
    values = block["operators"][2]
    block["forloop_range"], block["grid_dim"] = 2, {"x": 2, "y": 2, "z": 2}
    values["input_map"], values["forloop_dim"] = {"x": 0, "y": -1, "z": 1}, 1
    status, found = verdicts("attention", [graph], tmp_path, capfd)
    assert not found[0]["passed"]
    assert status == 1
