"""Random errors of a small program that are drawn together are those that are drawn one by one: as large, as different
from each other, of the same outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region
from mugraph.verification.draws import Draws, is_small
from mugraph.verification.float_inputs import make_inputs
from mugraph.verification.roundings import Perturbed
from mugraph.verification.torch_reference import evaluate, outputs
from torch import Tensor

PROGRAMS = {
    "attention": (
        "q=f16[2, 9, 16], k=f16[2, 21, 16], v=f16[2, 21, 24]",
        "q, k, v",
        "torch.softmax(q @ k.mT * 0.25, -1) @ v",
    ),
    "norm": ("x=f32[7, 40], w=f32[40, 12]", "x, w", "torch.nn.functional.rms_norm(x, (40,), eps=1e-6) @ w"),
    "causal": (
        "q=bf16[1, 2, 19, 16], k=bf16[1, 2, 19, 16], v=bf16[1, 2, 19, 16]",
        "q, k, v",
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
    ),
    "running": ("x=f32[5, 30]", "x", "torch.cumsum(torch.sigmoid(x), -1) * x"),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> TensorProgram:
    shapes, names, result = PROGRAMS[request.param]
    path = tmp_path / "program.py"
    path.write_text(f"import torch\n\n\n# mugraph: {shapes}\ndef f({names}):\n    return {result}\n")
    (region,) = trace_file(path).regions
    (unit,) = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
    return unit.program


def inputs_of(program: TensorProgram) -> dict[str, Tensor]:
    drawn = make_inputs(program, "normal", torch.Generator().manual_seed(3))
    assert drawn is not None
    return drawn.inputs


def errors(draws: list[dict[str, Tensor]], exact: dict[str, Tensor], name: str) -> Tensor:
    """Of each draw, relative to the output's root mean square."""
    size = exact[name].square().mean().sqrt()
    return torch.stack([(draw[name] - exact[name]) / size for draw in draws])


def test_errors_are_as_large_and_as_different(program: TensorProgram) -> None:
    assert is_small(program)
    inputs, wanted = inputs_of(program), tuple(program.outputs)
    exact = outputs(program, evaluate(program, inputs, wanted=wanted, shifts=True))
    together = Draws(program, inputs, Perturbed(program, torch.Generator().manual_seed(1)))
    mine = [together.of(number) for number in range(64)]
    rounding = Perturbed(program, torch.Generator().manual_seed(2))
    one_by_one = [outputs(program, evaluate(program, inputs, rounding, wanted, shifts=True)) for _ in range(64)]
    for name in exact:
        ours, theirs = errors(mine, exact, name), errors(one_by_one, exact, name)
        assert ours.shape == theirs.shape
        spread, other = ours.square().mean().sqrt(), theirs.square().mean().sqrt()
        assert 0.9 < float(spread / other) < 1.1
        # Each draw has its own: the mean of 64 is small.
        assert float(ours.mean(0).square().mean().sqrt()) < 0.3 * float(spread)
        assert not any(torch.equal(ours[0], one) for one in ours[1:])


def test_a_draw_stays_what_it_is(program: TensorProgram) -> None:
    draws = Draws(program, inputs_of(program), Perturbed(program, torch.Generator().manual_seed(1)))
    first = {name: one.clone() for name, one in draws.of(2).items()}
    draws.of(70)
    for name, one in draws.of(2).items():
        assert torch.equal(one, first[name])
