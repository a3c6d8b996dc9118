"""`mugraph bench search`: the contract's document, and recognisers that tell named μGraphs from others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.commands.bench_search import is_among, searched, split
from mugraph.commands.forms import Form, Pattern, parsed
from mugraph.commands.papers import PROGRAMS
from mugraph.executors.executor import Executor
from mugraph.executors.inline import Inline
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search import Limits, topologies
from mugraph.targets import TARGETS
from mugraph.tune import device

SAMPLES = Path(__file__).parents[3] / "samples"
SIZES = {"m": 64, "k": 128, "n": 64}


def tensor(name: str, *axes: str) -> Tensor:
    dims = tuple((axis,) for axis in axes)
    return Tensor(name, dims, contiguous_strides(dims, SIZES), "f16", name)


X, W, U, OUT = tensor("x", "m", "k"), tensor("w", "k", "n"), tensor("u", "k", "n"), tensor("out", "m", "n")
LOADS = tuple(Op(t.name, Kind.LOAD, (), tuple(sorted(t.axes)), tensor=t.name) for t in (X, W, U))
MN = ("m", "n")
GATED = TensorProgram(
    "gated",
    SIZES,
    (X, W, U),
    (
        *LOADS,
        Op("a", Kind.DOT, ("x", "w"), MN, ("k",)),
        Op("b", Kind.DOT, ("x", "u"), MN, ("k",)),
        Op("s", Kind.UNARY, ("b",), MN, fn="silu"),
        Op("y", Kind.MUL, ("a", "s"), MN),
    ),
    {"y": OUT},
)
(FORM,) = PROGRAMS["GatedMLP"].forms


@pytest.fixture(scope="module")
def blocks() -> list[BlockGraph]:
    return [found.block for found in topologies(GATED, Limits(seconds=2.0))]


def test_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(device, "driver_present", lambda: False)
    assert run(["bench", "search", "gatedmlp", "--samples", str(SAMPLES), "--json"]) == 0
    (program,) = json.loads(capfd.readouterr().out)["programs"]
    assert set(program) == {
        "name", "first_verified_s", "total_s", "topologies", "candidates", "complete", "named",
    }  # fmt: skip
    assert program["name"] == "GatedMLP"
    assert 0 < program["first_verified_s"] < program["total_s"]
    assert program["named"] == [FORM.name]
    assert program["complete"]
    assert program["topologies"] >= 2
    assert program["candidates"] > 10


def test_wrong_usage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "search", "G13"]) == 2
    assert "no program is called G13; there are RMSNorm," in capfd.readouterr().err
    assert run(["bench", "search", "G1", "--executor", "dask"]) == 2
    assert "there is no executor 'dask'; there are inline, processes," in capfd.readouterr().err
    assert run(["bench", "search", "G1", "--samples", str(tmp_path / "none")]) == 2
    assert "--samples" in capfd.readouterr().err
    assert run(["bench", "search", "G1", "--samples", str(tmp_path)]) == 1  # a folder without the file
    assert "does not exist" in capfd.readouterr().err


def test_every_program_has_its_sample_and_no_sample_is_called_search() -> None:
    for name, paper in PROGRAMS.items():
        text = (SAMPLES / f"{paper.file}.py").read_text()
        owner, _, method = paper.function.rpartition(".")
        assert f"def {method}(" in text, name
        assert not owner or f"class {owner}(" in text, name
    assert not (SAMPLES / "search.py").exists()
    for form in (form for paper in PROGRAMS.values() for form in paper.forms):
        wanted = (form.output, *form.handed.values())
        assert all(isinstance(parsed(text), Pattern) for text in wanted)
        assert set(form.handed) <= variables(parsed(form.output))
        assert set(form.roots) <= {v for text in wanted for v in variables(parsed(text))}


def variables(pattern: Pattern) -> set[str]:
    inner = {name for arg in pattern.args for name in variables(arg)}
    return inner if pattern.args or pattern.name == "_" else {pattern.name}


def test_patterns() -> None:
    square = Pattern("mul", (), (Pattern("x"), Pattern("_")))
    root = Pattern("sqrt", (), (Pattern("~", (), (Pattern("sum", ("h", "k"), (square,)),)),))
    assert parsed("div(a, sqrt(~sum[h, k](mul(x, _))))") == Pattern("div", (), (Pattern("a"), root))
    for wrong in ("div(a", "a b", "sum[h(a)", ""):
        with pytest.raises(ValueError, match="is no pattern"):
            parsed(wrong)


def test_one_kernel_of_a_form_is_told_from_others(blocks: list[BlockGraph]) -> None:
    found = [block for block in blocks if FORM.matches([block])]
    assert {block.loops for block in found} == {(Loop("k"),)}
    assert 0 < len(found) < len(blocks)
    assert is_among(FORM, GATED, blocks)
    assert not is_among(FORM, GATED, [block for block in blocks if block not in found])


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("mul(accum[h](dot[h](w, x)), silu(accum[h](dot[h](x, u))))", True),  # in either order, x is one value
        ("mul(accum[h](dot[h](x, w)), silu(accum[h](dot[h](x, w))))", False),  # not the same product twice
        ("mul(accum[h](dot[h](x, w)), silu(accum[r](dot[r](x, u))))", False),  # h and r are different axes
        ("mul(accum[h](dot[h](x, w)), relu(accum[h](dot[h](x, u))))", False),
        ("mul(_, ~silu(_))", True),
        ("div(_, _)", False),
    ],
)
def test_patterns_match_up_to_order_and_names(blocks: list[BlockGraph], pattern: str, matches: bool) -> None:
    looped = next(block for block in blocks if block.loops)
    assert Form("", pattern).matches([looped]) is matches


def test_constants_on_top_are_left_out() -> None:
    ops = (*LOADS, Op("c", Kind.CONST, value=0.5), Op("a", Kind.MUL, ("c", "x"), ("k", "m")))
    ops += (Op("b", Kind.DIV, ("a", "c"), ("k", "m")), Op("d", Kind.DIV, ("c", "b"), ("k", "m")))
    block = BlockGraph("b", SIZES, (X, OUT), (*ops, Op("store", Kind.STORE, ("b",), MN, tensor="out")))
    assert Form("", "~exp(_)").matches([block]) is False
    assert Form("", "sqrt(_)", {}).matches([block]) is False
    assert Form("", "~x").matches([block])
    upside_down = replace(block, ops=(*ops, Op("store", Kind.STORE, ("d",), MN, tensor="out")))
    assert not Form("", "~mul(_, _)").matches([upside_down])  # a constant divided by it is something else
    assert Form("", "~mul(_, _)").matches([block])


def test_two_kernels(blocks: list[BlockGraph]) -> None:
    parts = {"a": "accum[p](dot[p](x, w))", "b": "accum[p](dot[p](x, u))"}
    form = Form("split gated MLP", "mul(sum[s](a), silu(sum[s](b)))", parts)
    assert is_among(form, GATED, blocks)
    pairs = [kernels for kernels in split(blocks) if form.matches(kernels)]
    assert pairs
    assert not any(form.matches([first]) for first, _ in pairs)
    assert not is_among(replace(form, handed={**parts, "b": "accum[p](dot[p](x, x))"}), GATED, blocks)
    assert not is_among(replace(form, roots={"x": 1}), GATED, blocks)


def test_a_form_that_is_another_function_is_not_named(blocks: list[BlockGraph]) -> None:
    other = replace(GATED, ops=tuple(replace(op, fn="relu") if op.kind is Kind.UNARY else op for op in GATED.ops))
    assert not is_among(FORM, other, blocks)


@pytest.mark.parametrize("executor", [None, Inline()], ids=["search", "spread"])
def test_the_report_says_what_was_searched(executor: Executor | None) -> None:
    result = searched(GATED, (FORM, Form("nothing", "exp(_)")), TARGETS["h100"], 2.0, executor)
    assert result.named == (FORM.name,)
    assert result.unnamed == ("nothing",)
    assert result.search.complete
    assert result.search.topologies > 1
