from pathlib import Path

import pytest
from hypothesis import given, settings
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_mugraph, check_program
from mugraph.ir.text import (
    TextError,
    format_block,
    format_mugraph,
    format_program,
    parse_block,
    parse_mugraph,
    parse_program,
)

from tests.engine.ir.goldens import check_golden
from tests.engine.ir.graphs import GRAPHS, PROGRAMS, attention, gemm_chain, lora_program, rmsnorm_matmul, two_kernels
from tests.engine.ir.random_graphs import mugraphs, programs

GOLDENS = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", GRAPHS)
def test_golden(name: str) -> None:
    graph = GRAPHS[name]()
    text = format_mugraph(graph)
    check_golden(GOLDENS / f"{name}.mugraph", text)
    assert parse_mugraph(text) == graph


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden_program(name: str) -> None:
    program = PROGRAMS[name]()
    text = format_program(program)
    check_golden(GOLDENS / f"{name}.program", text)
    assert parse_program(text) == program


@settings(max_examples=150, deadline=None)
@given(mugraphs())
def test_mugraphs_parse_back(graph: MuGraph) -> None:
    assert check_mugraph(graph) == []
    assert parse_mugraph(format_mugraph(graph)) == graph
    block = graph.kernels[0].block
    assert parse_block(format_block(block)) == block


@settings(max_examples=100, deadline=None)
@given(programs())
def test_programs_parse_back(program: TensorProgram) -> None:
    assert check_program(program) == []
    assert parse_program(format_program(program)) == program


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mugraph rmsnorm_matmul(", "graph rmsnorm_matmul(", "line 1: expected `mugraph`"),
        (") -> y\n", ")\n", "line 1: the outputs are missing"),
        ("b=16", "b=many", "line 2: 'many' is no integer"),
        ("x f16", "x f17", "line 3: f17 is no element type"),
        ("g f16[h]", "g f16[hh]", "line 4: axis hh of tensor g has no size"),
        ("w f16[h, n]", "w f16[h, n] strides [1]", "line 5: tensor w has 2 dimensions and 1 strides"),
        ("tensor g", "tensor x", "line 4: there are two tensors x"),
        ("(x, g, w, y)", "(x, g, w2, y)", "line 8: there is no tensor w2"),
        ("loops h/256", "loops h/256(", "line 10: a loop is missing its axis"),
        ("warps=4", "warps=some", "line 11: 'warps=some stages=3' is not"),
        ("for h/256", "for h/128", "line 13: the loops around X show tiles that are not those of `loops`"),
        ("load(x)  imap {x: φ", "load(x)  imap {x: h", "line 13: the maps of X follow from its axes"),
        ("mul(X, G)", "mul(X)", "line 16: mul takes 2 values, not 1"),
        ("mul(X, G)", "multiply(X, G)", "line 16: multiply is no operator"),
        ("dot(xg, W, over=h)", "dot(xg, W)", "line 17: dot needs `over=` as its last argument"),
        ("const(1024.0)", "const(many)", "line 22: 'many' is no number"),
        ("    mean[b]", "      mean[b]", "line 23: mean runs outside all loops, not inside `for h`"),
        ("mean, rms, z", "mean, rms, zz", "line 28: thread graph z holds zz, which the block graph does not"),
        ("load(w)", "load(v)", "line 15: there is no tensor v in kernel rmsnorm_matmul"),
        (
            "    thread z",
            "    strand z",
            "line 28: 'strand z(squares, product) = count, mean, rms, z' is not understood here",
        ),
    ],
)
def test_errors_name_the_line(old: str, new: str, message: str) -> None:
    text = format_mugraph(rmsnorm_matmul())
    assert old in text
    with pytest.raises(TextError) as error:
        parse_mugraph(text.replace(old, new, 1))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_empty_text_is_refused() -> None:
    with pytest.raises(TextError, match="line 1: expected `program`, found nothing"):
        parse_program("\n  # only a comment\n")


def test_a_program_shows_no_maps() -> None:
    text = format_program(lora_program()).replace("load(x)", "load(x)  imap {x: m}", 1)
    with pytest.raises(TextError, match="line 7: an operator of a tensor program has no maps"):
        parse_program(text)


def test_loop_nests_are_nested() -> None:
    text = format_mugraph(gemm_chain())
    assert "    for n/128:\n      for k/32:\n        A[k, m] = load(a)" in text
    assert "\n      cd[h, m] = dot(c, D, over=n)" in text


def test_comments_and_blank_lines_are_free() -> None:
    graph = attention()
    lines = format_mugraph(graph).splitlines()
    assert parse_mugraph("# a comment\n\n" + "\n\n# another\n".join(lines)) == graph


def test_launches_of_several_kernels() -> None:
    graph = two_kernels()
    text = format_mugraph(graph)
    assert "  one_launch rmsnorm_matmul, rmsnorm_matmul_2\n" in text
    assert parse_mugraph(text) == graph
