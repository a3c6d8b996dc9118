"""Units as one: names that stand for two things are told apart, and what several read is one tensor."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Call, Position, Range, Ref, SearchUnit
from mugraph.ir.spec import check_program
from mugraph.units.united import NotOne, united

from tests.engine.codegen.cases import CASES
from tests.engine.codegen.splits import program_of
from tests.engine.units.regions import cut, meta, units

HERE = Range(Position(0, 0), Position(0, 1))


def unit(name: str, inputs: dict[str, int], made: int, calls: tuple[Call, ...] = ()) -> SearchUnit:
    program = program_of(CASES[name][0])
    (output,) = (tensor.name for tensor in program.outputs.values())
    ops = {op.name: (0,) for op in program.compute_ops} if calls else {}
    return SearchUnit(program, inputs, {output: made}, calls, ops)


def test_names() -> None:
    """The same rows, normed and multiplied by other weights; sizes of one name differ."""
    one = unit("rms_norm_linear", {"x": 0, "g": 1, "w": 2}, 5)
    other = unit("gated_mlp", {"x": 3, "w_gate": 4, "w_up": 6}, 7)
    whole, (first, second) = united([one, other], "both")
    assert check_program(whole.program) == []
    assert whole.inputs == {"x": 0, "g": 1, "w": 2, "x_2": 3, "w_gate": 4, "w_up": 6}
    assert whole.outputs == {"out": 5, "out_2": 7}
    assert first.axes == {"m": "m", "h": "h", "n": "n"}
    assert second.axes == {"m": "m_2", "h": "h_2", "n": "n"}  # n has 128 in both
    assert whole.program.sizes == {"m": 16, "h": 256, "n": 128, "m_2": 8, "h_2": 128}
    assert len({op.name for op in whole.program.ops}) == len(whole.program.ops)


def test_what_both_read_is_loaded_once() -> None:
    one = unit("rms_norm_linear", {"x": 0, "g": 1, "w": 2}, 5)
    other = unit("rms_norm_linear", {"x": 0, "g": 1, "w": 3}, 6)
    whole, (_, second) = united([one, other], "both")
    assert check_program(whole.program) == []
    assert [tensor.name for tensor in whole.program.tensors] == ["x", "g", "w", "w_2"]
    assert second.tensors == {"x": "x", "g": "g", "w": "w_2", "out": "out_2"}
    third = unit("rms_norm_linear_2_rows", {"x": 0, "g": 1, "w": 3}, 7)  # another view of x
    whole, (_, second) = united([one, third], "both")
    assert second.tensors["x"] == "x_2"
    assert whole.inputs["x_2"] == 0


def test_calls_that_both_have_are_made_once() -> None:
    norm = Call("torch.rms_norm", (Ref(0),), {}, (8,), HERE)
    product, other = (Call("torch.matmul", (Ref(8), Ref(of)), {}, (made,), HERE) for of, made in ((2, 5), (3, 6)))
    one = unit("rms_norm_linear", {"x": 0, "g": 1, "w": 2}, 5, (norm, product))
    again = replace(unit("rms_norm_linear", {"x": 0, "g": 1, "w": 3}, 6, (norm, other)))
    again = replace(again, origins=dict.fromkeys(again.origins, (0, 1)))
    whole, (_, names) = united([one, again], "both")
    assert whole.calls == (norm, product, other)
    assert {whole.origins[names.values[op]] for op in again.origins} == {(0, 2)}


def test_it_computes_what_both_do() -> None:
    one = unit("gated_mlp_tail", {"x": 0, "w_gate": 1, "w_up": 2}, 5)
    other = unit("layer_norm", {"x": 3, "w": 4, "b": 6}, 7)
    whole, renamings = united([one, other], "both")
    assert check_program(whole.program) == []
    for own, names in zip((one, other), renamings, strict=True):
        renamed: TensorProgram = names.program(own.program, "own")
        assert set(renamed.ops) <= set(whole.program.ops)
        assert set(renamed.outputs.items()) <= set(whole.program.outputs.items())
    assert len(whole.program.ops) == len(one.program.ops) + len(other.program.ops)


def test_sizes_that_vary() -> None:
    one = unit("gated_mlp", {"x": 0, "w_gate": 1, "w_up": 2}, 5)
    with pytest.raises(NotOne, match="a size that varies"):
        united([one, replace(one, program=replace(one.program, least={"m": 1}))], "both")


def chosen(x: torch.Tensor, w: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ti,taoi->tao", x, w[picks])


def experts(x: int, w: int, picks: int, made: int) -> SearchUnit:
    """Of rows of weights, with the numbers of its values."""
    inputs = {"x": meta(2, 64), "w": meta(8, 96, 64), "picks": meta(2, 2, dtype=torch.int64)}
    (found,) = units(cut(chosen, **inputs))
    return replace(found, inputs={"x": x, "w": w, "picks": picks}, outputs={"out": made})


def test_an_index_that_both_read_is_one() -> None:
    whole, (_, second) = united([experts(0, 1, 2, 5), experts(0, 3, 2, 6)], "both")
    assert check_program(whole.program) == []
    assert [index.name for index in whole.program.indices] == ["picks"]
    assert second.tensors == {"x": "x", "w": "w_2", "picks": "picks", "out": "out_2"}
    assert whole.inputs == {"x": 0, "w": 1, "w_2": 3, "picks": 2}


def test_rows_that_another_index_says_are_others() -> None:
    """Also of one table."""
    whole, (_, second) = united([experts(0, 1, 2, 5), experts(0, 1, 4, 6)], "both")
    assert check_program(whole.program) == []
    assert [index.name for index in whole.program.indices] == ["picks", "picks_2"]
    assert second.tensors == {"x": "x", "w": "w_2", "picks": "picks_2", "out": "out_2"}
    assert whole.inputs == {"x": 0, "w": 1, "w_2": 1, "picks": 2, "picks_2": 4}
