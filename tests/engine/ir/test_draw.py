"""Drawings: golden files, and what must hold of any: nothing cut, nothing overlapping, loops hold their own."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.drawing import draw_overview, draw_svg, draw_tree
from mugraph.ir.drawing.layout import INPUT, OUTPUT, graph_edges, layout
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.placement import placement

from tests.engine.ir.goldens import check_golden
from tests.engine.ir.graphs import (
    GRAPHS,
    Ops,
    attention,
    gemm_chain,
    norm_and_cat,
    rmsnorm_matmul,
    single,
    tensor,
    two_kernels,
)
from tests.engine.ir.random_graphs import mugraphs

GOLDENS = Path(__file__).parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"
NODES = {"op", "matmul", "reduce", "tensor", "output"}


@dataclass(frozen=True)
class Rect:
    look: str
    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Rect) -> bool:
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def holds(self, other: Rect) -> bool:
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.width <= self.x + self.width + 0.2
            and other.y + other.height <= self.y + self.height + 0.2
        )


def pictures(svg: str) -> Iterator[tuple[ET.Element, float, float]]:
    """Each kernel's group and where it is."""
    for group in ET.fromstring(svg).findall(f"{SVG}g"):
        found = re.fullmatch(r"translate\((\S+) (\S+)\)", group.attrib["transform"])
        assert found
        yield group, float(found[1]), float(found[2])


def rects(group: ET.Element, dx: float, dy: float) -> list[Rect]:
    return [
        Rect(
            rect.attrib["class"],
            float(rect.attrib["x"]) + dx,
            float(rect.attrib["y"]) + dy,
            float(rect.attrib["width"]),
            float(rect.attrib["height"]),
        )
        for rect in group.iter(f"{SVG}rect")
    ]


def check_drawing(graph: MuGraph) -> None:
    svg = draw_svg(graph)
    root = ET.fromstring(svg)
    page = Rect("page", 0, 0, float(root.attrib["width"]), float(root.attrib["height"]))
    everything: list[Rect] = []
    for group, dx, dy in pictures(svg):
        found = rects(group, dx, dy)
        assert all(page.holds(rect) for rect in found)
        nodes = [rect for rect in found if rect.look in NODES]
        assert not any(one.overlaps(other) for one, other in combinations(nodes, 2))
        (kernel,) = (rect for rect in found if rect.look == "kernel")
        for rect in found:
            if rect.look in ("tensor", "output"):
                assert not kernel.overlaps(rect)
            elif rect.look != "kernel":
                assert kernel.holds(rect)
        for loop in (rect for rect in found if rect.look == "loop"):
            # A loop's box cuts through no node.
            assert all(loop.holds(node) or not loop.overlaps(node) for node in nodes)
        for box in group.iter(f"{SVG}g"):
            words = box.findall(f"{SVG}text")
            sizes = box.findall(f"{SVG}rect")
            if len(sizes) == 1:
                for text in words:
                    per_letter = 0.7 * 13 if text.attrib["class"].startswith("name") else 0.6 * 11
                    assert len(text.text or "") * per_letter <= float(sizes[0].attrib["width"])
        everything += [kernel]
    assert not any(one.overlaps(other) for one, other in combinations(everything, 2))


@pytest.mark.parametrize("name", GRAPHS)
def test_golden(name: str) -> None:
    graph = GRAPHS[name]()
    check_golden(GOLDENS / f"{name}.tree", draw_tree(graph))
    check_golden(GOLDENS / f"{name}.svg", draw_svg(graph))


def test_golden_dark() -> None:
    check_golden(GOLDENS / "attention.dark.svg", draw_svg(attention(), "dark"))


@pytest.mark.parametrize("name", GRAPHS)
def test_drawings_of_the_papers_graphs(name: str) -> None:
    check_drawing(GRAPHS[name]())


def check_overview(graph: MuGraph) -> None:
    """Of a hover's size, with everything inside it, in letters that can be read."""
    svg = draw_overview(graph)
    root = ET.fromstring(svg)
    height = float(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 680 {root.attrib['height']}"
    assert height <= 270
    assert len(svg) < 20_000
    page = Rect("page", 0, 0, 680, height)
    root.remove(next(rect for rect in root if rect.attrib.get("class") == "page"))
    boxes = rects(root, 0, 0)
    assert all(page.holds(box) for box in boxes)
    kernels = [box for box in boxes if box.look == "kernel"]
    assert not any(one.overlaps(other) for one, other in combinations(kernels, 2))
    for loop in (box for box in boxes if box.look == "loop"):
        assert any(kernel.holds(loop) for kernel in kernels)
    for text in root.iter(f"{SVG}text"):
        assert float(text.attrib["y"]) <= height
        assert float(text.attrib["x"]) + len(text.text or "") * 7 <= 680


@pytest.mark.parametrize("name", GRAPHS)
def test_overviews_of_the_papers_graphs(name: str) -> None:
    check_overview(GRAPHS[name]())
    check_golden(GOLDENS / f"{name}.overview.svg", draw_overview(GRAPHS[name]()))


@settings(max_examples=60, deadline=None)
@given(mugraphs())
def test_overviews_of_random_graphs(graph: MuGraph) -> None:
    check_overview(graph)


@settings(max_examples=60, deadline=None)
@given(mugraphs())
def test_drawings_of_random_graphs(graph: MuGraph) -> None:
    check_drawing(graph)
    assert all(len(line) <= 100 for line in draw_tree(graph).splitlines())


@settings(max_examples=60, deadline=None)
@given(mugraphs())
def test_columns_follow_data_and_loops_have_columns_of_their_own(graph: MuGraph) -> None:
    for kernel in graph.kernels:
        if isinstance(kernel, GraphKernel):
            check_columns(kernel)


@pytest.mark.parametrize("name", GRAPHS)
def test_columns_of_the_papers_graphs(name: str) -> None:
    for kernel in GRAPHS[name]().kernels:
        if isinstance(kernel, GraphKernel):
            check_columns(kernel)


@pytest.mark.parametrize("loops", [(Loop("b", (Loop("c"),)), Loop("a")), (Loop("a"), Loop("b", (Loop("c"),)))])
def test_columns_of_nests_beside_other_loops(loops: tuple[Loop, ...]) -> None:
    """A nest of loops with a value that feeds its outer loop alone, and a loop that reads what the nest leaves."""
    sizes = {"a": 16, "b": 16, "c": 16}
    one = tensor("one", (("a",),), sizes)
    outer, inner = tensor("outer", (("b",),), sizes), tensor("inner", (("b",), ("c",)), sizes)
    scale, out = tensor("scale", (), sizes), tensor("out", (), sizes)
    ops = Ops((one, outer, inner, scale, out))
    ops.load("One", "one"), ops.load("Outer", "outer"), ops.load("Inner", "inner"), ops.load("Scale", "scale")
    ops.op("feeds", Kind.EXP, "Scale")
    ops.reduce("columns", Kind.SUM, "Inner", over="c"), ops.accum("rows", "columns", "c")
    ops.op("shifted", Kind.ADD, "Outer", "feeds"), ops.op("both", Kind.MUL, "rows", "shifted")
    ops.reduce("part", Kind.SUM, "both", over="b"), ops.accum("nest", "part", "b")
    ops.op("root", Kind.SQRT, "nest"), ops.op("scaled", Kind.MUL, "One", "root")
    ops.reduce("last", Kind.SUM, "scaled", over="a"), ops.accum("z", "last", "a"), ops.store("stored", "z", "out")
    block = BlockGraph("nests", sizes, (one, outer, inner, scale, out), tuple(ops.ops), loops)
    graph = single(block, Schedule((), {"a": 4, "b": 4, "c": 4}))
    (kernel,) = graph.kernels
    assert isinstance(kernel, GraphKernel)
    check_columns(kernel)
    check_drawing(graph)


def check_columns(kernel: GraphKernel) -> None:
    block = kernel.block
    placed = layout(block)
    for source, target in graph_edges(block):
        assert placed.columns[source] < placed.columns[target]
    where = placement(block)
    for axis, (first, last, _, _) in placed.loops.items():
        for name, column in placed.columns.items():
            if name.startswith((INPUT, OUTPUT)):
                continue
            assert (first <= column <= last) == (axis in where[name]), name
    for op in block.ops:
        if op.kind is Kind.ACCUM:
            assert placed.columns[op.name] == placed.loops[op.over[0]][1]


def test_small_graphs_fit_a_hover() -> None:
    root = ET.fromstring(draw_svg(rmsnorm_matmul()))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert 680 <= width <= 960
    assert 270 <= height <= 330


def test_drawings_name_kernels_grid_loops_and_shapes() -> None:
    text = "".join(ET.fromstring(draw_svg(gemm_chain())).itertext())
    for words in ("gemm_chain", "grid h/64, m/32: 16 blocks", "for n: 2 × 128", "for k: 2 × 32", "f16 [512, 64]"):
        assert words in text
    assert "torch.cat((left, right), dim=-1)" in draw_svg(norm_and_cat())


def test_text_is_at_least_11_px() -> None:
    for theme in ("light", "dark"):
        sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", draw_svg(attention(), theme))]
        assert sizes
        assert min(sizes) >= 11


def test_long_lines_of_the_tree_are_cut() -> None:
    lines = draw_tree(rmsnorm_matmul(), width=40).splitlines()
    assert max(map(len, lines)) == 40
    assert any(line.endswith("…") for line in lines)


def test_kernels_of_one_launch_say_so() -> None:
    """Of several kernels that run side by side, each names the others."""
    graph = two_kernels()
    for drawn in (draw_svg(graph), draw_tree(graph, width=200)):
        assert "; one launch with rmsnorm_matmul_2" in drawn
    assert draw_overview(graph).count("; one launch wi") == 2
    assert "one launch" not in draw_tree(replace(graph, one_launch=()), width=200)
