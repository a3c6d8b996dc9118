"""A program that is cut along an axis that it reduces is the program: exact, as eager PyTorch rounds it, and in what
may be lost on the way."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from mugraph.ir.program import TensorProgram
from mugraph.verification import float_inputs, scenario_run
from mugraph.verification.across import Evaluation
from mugraph.verification.pieces import Piece, pieces
from mugraph.verification.roundings import Eager, Perturbed
from mugraph.verification.torch_reference import Rounding, evaluate, outputs

from tests.engine.units.regions import cut, meta, units
from tests.engine.verification.in_child import every_scenario


def hinge(p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return torch.mean(torch.clamp(1 - p * t, min=0))


def norm(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(torch.sum(x * x))


def peak(x: torch.Tensor) -> torch.Tensor:
    y = x - x.mean()
    return torch.square(y).sum() / y.amax()


def columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.T @ y / (x * x).sum()


F32 = torch.float32
PROGRAMS = {
    "hinge": lambda: cut(hinge, p=meta(64, 48, dtype=F32), t=meta(48, dtype=F32)),
    "norm": lambda: cut(norm, x=meta(8, 4, 32, dtype=F32)),
    "peak": lambda: cut(peak, x=meta(64, 40, dtype=F32)),
    "columns": lambda: cut(columns, x=meta(64, 40, dtype=F32), y=meta(64, 24, dtype=F32)),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> TensorProgram:
    (unit,) = units(PROGRAMS[request.param]())
    return unit.program


def drawn(program: TensorProgram) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {t.name: torch.randn(t.shape(program.sizes), generator=generator) for t in program.tensors}


def together(
    program: TensorProgram, inputs: dict[str, torch.Tensor], parts: list[Piece], rounding: Rounding | None
) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    evaluation = Evaluation(program, inputs, parts, rounding, tuple(program.outputs))
    for piece in parts:
        for name, data in outputs(piece.program, evaluation.of(piece)).items():
            layout = program.tensor(name)
            whole = found.setdefault(name, data.new_full(layout.shape(program.sizes), float("nan")))
            piece.of(layout, whole).copy_(data)
    return found


@pytest.mark.parametrize("large", [200, 700])
@pytest.mark.parametrize("rounds", [False, True])
def test_it_is_the_whole(program: TensorProgram, large: int, rounds: bool) -> None:
    inputs = drawn(program)
    parts = list(pieces(program, large, across=True))
    assert len(parts) > 1
    rounding = Eager(program) if rounds else None
    whole = outputs(program, evaluate(program, inputs, rounding, tuple(program.outputs)))
    found = together(program, inputs, parts, rounding)
    assert found.keys() == whole.keys()
    for name, data in whole.items():
        # A sum that is rounded to float32 may be rounded to its neighbour where it was added up in another order.
        assert torch.allclose(found[name], data, rtol=2e-7 if rounds else 1e-12, atol=1e-12)


def test_only_where_there_is_no_other_axis(program: TensorProgram) -> None:
    assert [piece.axis for piece in pieces(program, 200)] == [None]
    (axis,) = {piece.axis for piece in pieces(program, 200, across=True)}
    assert any(axis in op.over for op in program.ops)


def test_what_may_be_lost_is_as_much(program: TensorProgram) -> None:
    """The spread of many draws, in pieces and of the whole, is of one size."""
    inputs = drawn(program)
    exact = outputs(program, evaluate(program, inputs, wanted=tuple(program.outputs)))
    parts = list(pieces(program, 700, across=True))

    def spread(parts: list[Piece]) -> dict[str, float]:
        squares = dict.fromkeys(exact, 0.0)
        for seed in range(40):
            perturbed = Perturbed(program, torch.Generator().manual_seed(seed))
            for name, data in together(program, inputs, parts, perturbed).items():
                squares[name] += float((data - exact[name]).square().mean())
        return squares

    one, other = spread(list(pieces(program))), spread(parts)
    for name in exact:
        assert 0.4 < (other[name] / one[name]) ** 0.5 < 2.5


def test_a_piece_that_is_left_out_shows(program: TensorProgram) -> None:
    inputs = drawn(program)
    parts = list(pieces(program, 200, across=True))
    whole = together(program, inputs, parts, None)
    lacking = Evaluation(program, inputs, parts[:-1], None, tuple(program.outputs))
    first = outputs(parts[0].program, lacking.of(parts[0]))
    assert any(
        not torch.allclose(data, parts[0].of(program.tensor(name), whole[name]), rtol=1e-6)
        for name, data in first.items()
    )


MODULES = {
    "hinge": "def launch(p, t):\n    return torch.clamp(1 - p * t, min=0).{part}mean()",
    "norm": "def launch(x):\n    return x / (x * x){part}.sum().sqrt()",
}
RIGHT = {"hinge": "", "norm": ""}
WRONG = {"hinge": "narrow(0, 0, 63).", "norm": "[:7]"}


@pytest.mark.parametrize("name", MODULES)
def test_a_float_test_in_pieces_tells_right_from_wrong(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (unit,) = units(PROGRAMS[name]())
    small = partial(pieces, large=500)
    seen: list[Piece] = []

    def noted(program: TensorProgram, _: int, *, across: bool) -> Iterator[Piece]:
        for piece in small(program, across=across):
            seen.append(piece)
            yield piece

    monkeypatch.setattr(scenario_run, "pieces", noted)
    monkeypatch.setattr(float_inputs, "pieces", small)
    for number, (part, right) in enumerate(((RIGHT[name], True), (WRONG[name], False))):
        request = {
            "number": number,
            "module": "import torch\n" + MODULES[name].format(part=part),
            "launcher": "launch",
            "program": base64.b64encode(pickle.dumps(unit.program)).decode(),
            "inputs": [tensor.name for tensor in unit.program.tensors],
            "outputs": [tensor.name for tensor in unit.program.outputs.values()],
            "seed": 0,
            "shapes": {},
        }
        results = every_scenario(request, tmp_path)
        assert all(one.passed for one in results) is right, results[-1].reason
    assert {piece.axis for piece in seen} != {None}
