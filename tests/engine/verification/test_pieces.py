"""A program in pieces is the program."""

from __future__ import annotations

import pytest
import torch
from mugraph.verification.pieces import pieces
from mugraph.verification.torch_reference import evaluate, outputs

from tests.engine.verification.float_programs import norm_program, softmax_program

PROGRAMS = {"norm": norm_program, "softmax": softmax_program}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("large", [1, 500, 3000, 1 << 20])
def test_pieces_put_together_are_the_whole(name: str, large: int):
    program = PROGRAMS[name]("f32")
    generator = torch.Generator().manual_seed(0)
    inputs = {t.name: torch.randn(t.shape(program.sizes), generator=generator) for t in program.tensors}
    whole = outputs(program, evaluate(program, inputs))
    found = {key: torch.full_like(data, float("nan")) for key, data in whole.items()}
    parts = list(pieces(program, large))
    for piece in parts:
        values = evaluate(piece.program, piece.inputs(inputs))
        for key, data in outputs(piece.program, values).items():
            piece.of(program.tensor(key), found[key]).copy_(data)
    assert (len(parts) > 1) is (large < 1 << 20)
    for key, data in whole.items():
        assert torch.allclose(found[key], data, rtol=1e-12, atol=1e-12)
