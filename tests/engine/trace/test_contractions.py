"""`opt_einsum.contract`, by which models write products of many tensors, is what it calls of PyTorch. A package of its
name stands for it here, which also keeps what is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.trace.tracer import trace_file

from tests.engine.trace.partition import only, targets

PACKAGE = """
import torch

ASKED = {}


def contract(text, *operands, **options):
    try:
        ASKED[text] += 1
    except KeyError:
        ASKED[text] = 1
    if len(operands) == 3:
        first = torch.tensordot(operands[0], operands[1], dims=([-1], [0]))
        return torch.einsum(f"abc,{text.split(',', 2)[2]}".replace("abc", "bqe"), first, operands[2])
    return torch.einsum(text, *operands)


class ContractExpression:
    def __init__(self, text, kept):
        self.text, self.kept = text, kept

    def __call__(self, x):
        return torch.einsum(self.text, x, self.kept)
"""
HEAD = """import sys
sys.path.append({packages!r})
import torch
{imported}

"""
PROGRAM = """
# mugraph: q=f32[2, 16, 8], k=f32[2, 16, 8], v=f32[2, 16, 8], w=f32[8, 8]
def attend(q, k, v, w):
    scores = {name}('bqd,de,bke->bqk', q, w, k, optimize='optimal')
    return {name}('bqk,bkd->bqd', torch.softmax(scores * 0.5, dim=-1), v)
"""
MADE = """
KEPT = ContractExpression('bqd,bkd->bqk', torch.ones(2, 16, 8))


# mugraph: q=f32[2, 16, 8]
def attend(q):
    return torch.tanh(torch.softmax(KEPT(torch.tanh(q).exp()) * 0.5, dim=-1).exp())
"""


def program(folder: Path, imported: str, text: str) -> Path:
    package = folder / "site-packages" / "opt_einsum"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .contract import ContractExpression, contract\n")
    (package / "contract.py").write_text(PACKAGE)
    path = folder / "program.py"
    path.write_text(HEAD.format(packages=str(package.parent), imported=imported) + text)
    return path


@pytest.mark.parametrize(
    ("imported", "name"),
    [("from opt_einsum import contract as einsum", "einsum"), ("import opt_einsum as oe", "oe.contract")],
)
def test_a_contraction_is_part_of_the_region(tmp_path: Path, imported: str, name: str) -> None:
    trace = trace_file(program(tmp_path, imported, PROGRAM.format(name=name)), check=True)
    assert trace.errors == ()
    region = only([one for one in trace.regions if one.status is None])
    products = ["torch.tensordot", "torch.einsum", "Tensor.mul", "torch.softmax", "torch.einsum"]
    assert targets(region) == products
    assert {"opt_einsum", "opt_einsum.contract.contract"} & set(region.outside.values())


def test_an_expression_that_keeps_tensors_is_none(tmp_path: Path) -> None:
    trace = trace_file(program(tmp_path, "from opt_einsum import ContractExpression", MADE), check=True)
    assert "opt_einsum.contract.ContractExpression" in trace.barriers
    assert all("torch.einsum" not in targets(one) for one in trace.regions if one.status is None)
