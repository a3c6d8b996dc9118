"""The checkpoints that the Mirage project published with its OSDI artifact: all their graphs are right."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from mugraph.ir.mirage import Unreadable, read_checkpoint
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.joining import units
from mugraph.verification.document import verify_mugraph

from tests.support.mirage import Json

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "mirage-checkpoints"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="Mirage's checkpoints are not here")
MODULE = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[2, 4096], w=f16[4096, 6144]
def rmsnorm_bs1(x, w):
    return (x / x.pow(2).mean(-1, keepdim=True).sqrt()) @ w


# mugraph: x=f16[16, 256], w=f16[256, 4096], a=f16[256, 16], b=f16[16, 4096]
def lora(x, w, a, b):
    return x @ w + (x @ a) @ b


# mugraph: x=f16[8, 4096], w1=f16[4096, 4096], w2=f16[4096, 4096]
def gated_mlp(x, w1, w2):
    return F.silu(x @ w1) * (x @ w2)


# mugraph: q=f16[2, 256, 64], k=f16[2, 64, 4096], v=f16[2, 4096, 64]
def gqa_bs1(q, k, v):
    e = torch.exp(q @ k)
    return (e / e.sum(-1, keepdim=True)) @ v
"""
NAMES = ("rmsnorm_bs1", "lora", "gated_mlp", "gqa_bs1")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TensorProgram]:
    path = tmp_path_factory.mktemp("mirage") / "model.py"
    path.write_text(MODULE)
    found = [unit for region in trace_file(path).regions for unit in units(region)]
    return {unit.program.name: unit.program for unit in found if isinstance(unit, SearchUnit)}


def _program(programs: dict[str, TensorProgram], name: str) -> TensorProgram:
    return next(program for key, program in programs.items() if key.startswith(name))


def _graphs(name: str) -> list[list[Json]]:
    return json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_all_are_accepted(name: str, programs: dict[str, TensorProgram]) -> None:
    for graph in read_checkpoint(_graphs(name), "f16"):
        assert not isinstance(graph, Unreadable), graph.reason
        verdict = verify_mugraph(_program(programs, name), graph, seed=1)
        assert verdict.passed, (graph.name, verdict.reason)


ACCUMULATORS = (
    "tb_forloop_accum_nored_op",
    "tb_forloop_accum_red_ld_sum_op",
    "tb_forloop_accum_red_ld_mean_op",
    "tb_forloop_accum_red_ld_rms_op",
    "tb_forloop_accum_redtox_ld_sum_op",
)
SAME_OF_64 = {"tb_forloop_accum_nored_op", "tb_forloop_accum_redtox_ld_sum_op"}
"""Nothing is summed of a tile that has as many columns as are to be left."""
UNARY = ("tb_exp_op", "tb_silu_op", "tb_square_op", "tb_sqrt_op", "tb_relu_op")
BINARY = ("add", "mul", "div", "sub")


def _altered(operators: list[Json], rng: random.Random) -> tuple[list[Json], str]:
    """One map or operator of a graph, exchanged for another one."""
    graph = copy.deepcopy(operators)
    blocks = [operator["bgraph"] for operator in graph if "bgraph" in operator]
    places = [*graph, *(one for block in blocks for one in block["operators"])]
    while True:
        operator = rng.choice(places)
        what = operator["op_type"]
        stem = what.removesuffix("_op")[3:]
        if "forloop_dim" in operator and rng.random() < 0.5:
            block = next(block for block in blocks if operator in block["operators"])
            others = [dim for dim in range(-1, operator["dtensor"]["num_dims"]) if dim != operator["forloop_dim"]]
            if block["forloop_range"] == 1:
                continue
            operator["forloop_dim"] = rng.choice(others)
        elif what in ("tb_input_op", "tb_output_op"):
            mapping = operator["input_map" if what == "tb_input_op" else "output_map"]
            block = next(block for block in blocks if operator in block["operators"])
            cut = [dim for dim in "xyz" if block["grid_dim"][dim] > 1]
            if not cut:
                continue
            dim = rng.choice(cut)
            mapping[dim] = rng.choice([n for n in range(-1, operator["dtensor"]["num_dims"]) if n != mapping[dim]])
        elif what in ACCUMULATORS or what in UNARY:
            among = ACCUMULATORS if what in ACCUMULATORS else UNARY
            operator["op_type"] = rng.choice([other for other in among if other != what])
            if {what, operator["op_type"]} == SAME_OF_64:
                operator["op_type"] = what
                continue
        elif stem in BINARY:
            operator["op_type"] = what.replace(stem, rng.choice([other for other in BINARY if other != stem]))
        else:
            continue
        return graph, f"{what} -> {operator}"


@pytest.mark.parametrize("name", NAMES)
def test_one_map_or_operator_altered(name: str, programs: dict[str, TensorProgram]) -> None:
    rng = random.Random(7)
    for operators in _graphs(name):
        altered, what = _altered(operators, rng)
        (graph,) = read_checkpoint([altered], "f16")
        if isinstance(graph, Unreadable):
            continue
        assert not verify_mugraph(_program(programs, name), graph, seed=1).passed, what
