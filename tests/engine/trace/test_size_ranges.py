"""Sizes with a range: what a comment may say, and what code they fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.ops import Kind
from mugraph.ir.ranges import FIXED, Product
from mugraph.ir.region import Region, SearchUnit
from mugraph.ir.sized_arguments import multiple
from mugraph.ir.text import format_program, parse_program
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.regions.dynamic import size_texts
from mugraph.trace.syntax.shapes import BadShapes, TensorSpec, parse_description
from mugraph.trace.tracer import trace_file
from mugraph.units.part_views import with_views
from mugraph.units.ranged import ranged_units, values_at


def test_a_range_is_read_with_its_largest_size() -> None:
    said = parse_description(["b=1..64, x=f16[b, 4096], y=f16[2 * b, 8]"])
    assert said.arguments["x"] == TensorSpec("f16", (64, 4096))
    assert said.arguments["y"] == TensorSpec("f16", (128, 8))
    assert str(said.ranges["b"]) == "b = 1..64"
    smaller = parse_description(["b=1..64", "x=f16[b, 4096]"], pick=lambda size: size.least)
    assert smaller.arguments["x"] == TensorSpec("f16", (1, 4096))


def test_a_size_may_be_a_sum_of_others() -> None:
    said = parse_description(["s=t0 + t, t0=1..60, t=1..4, twice=2 * s - 1, k=f16[twice, 64, 8]"])
    assert said.arguments["k"] == TensorSpec("f16", (127, 64, 8))
    assert said.named >= {"s", "t0", "t"}, "the sizes that are summed are used where the sum is"
    less = parse_description(["s=t0 + t, t0=1..60, t=1..4, k=f16[s, 8]"], pick=lambda size: size.least)
    assert less.arguments["k"] == TensorSpec("f16", (2, 8))
    with pytest.raises(BadShapes) as error:
        parse_description(["s=t0 + u, t0=1..60, k=f16[s, 8]"])
    assert "no size is given for “s”" in str(error.value)


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("b=64..1, x=f16[b, 8]", "is reversed; write “b=1..64”"),
        ("b=0..64, x=f16[b, 8]", "begins at 0; a size is at least 1"),
        ("b=-4..64, x=f16[b, 8]", "begins at -4"),
        ("b=8..8, x=f16[b, 8]", "holds one size; write “b=8”"),
        ("b=1.., x=f16[b, 8]", "is no range of sizes; write both ends, like “b=1..64”"),
        ("b=..64, x=f16[b, 8]", "is no range of sizes"),
        ("b=.., x=f16[b, 8]", "is no range of sizes"),
        ("b=1..n, x=f16[b, 8]", "is no range of sizes"),
        ("b=1..64, b=1..32, x=f16[b, 8]", "“b” is given twice"),
        ("b=1..64, x=f16[b, 8], b=16", "“b” is given twice"),
        (
            ", ".join(f"{name}=1..4" for name in "bcdefghij") + ", x=f16[b, c, d, e, f, g, h, i, j]",
            "have ranges; 8 of them may",
        ),
        ("b=1..99999999, x=f16[b, 8]", "is the most"),
    ],
)
def test_a_bad_range_is_one_sentence(comment: str, said: str) -> None:
    with pytest.raises(BadShapes) as error:
        parse_description([comment])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


CODE = """
import torch

# mugraph: b=1..32, x=f16[b, 64, 96], w=f16[96, 80]
def rows(x, w):
    b, s, d = x.shape
    return (x.reshape(b * s, d) @ w).view(b, s, -1)

# mugraph: b=1..64, x=f16[b, 96], w=f16[96, 80]
def branch(x, w):
    if x.shape[0] > 40:
        x = torch.relu(x)
    return x @ w

# mugraph: b=1..64, x=f16[b, 96], w=f16[96, 80]
def one_size(x, w):
    if x.shape[0] == 17:
        x = x + x
    return x @ w

# mugraph: b=1..64, x=f16[b, 96], w=f16[96, 80]
def averaged(x, w):
    return torch.add(x @ w, w[0], alpha=x.shape[0])

# mugraph: b=1..64, x=f16[b, 96], y=f16[64, 96]
def fixed(x, y):
    return (x + y) @ y.T

# mugraph: b=1..64, x=f16[8, 96], w=f16[96, 80]
def unused(x, w):
    return x @ w

# mugraph: b=1..64, x=f16[b, 96], w=f16[96, 80]
def half(x, w):
    return x[: x.shape[0] // 2] @ w

# mugraph: b=1..64, x=f16[b, 96], w=f16[96, 80]
def scaled(x, w):
    return (x @ w) / (x.shape[0] ** 0.5 + 1)

# mugraph: b=1..64, q=f16[b, 96], k=f16[b, 96], v=f16[b, 96]
def triangle(q, k, v):
    mask = torch.ones(q.shape[0], q.shape[0], dtype=torch.bool).tril(q.shape[0] // 4)
    return torch.softmax((q @ k.T).masked_fill(~mask, float("-inf")), -1) @ v

# mugraph: b=1..64, q=f16[2, 2, b, 96], k=f16[2, 2, b, 96]
def squared(q, k):
    return torch.softmax(q @ k.transpose(-1, -2), -1)

# mugraph: b=1..64, q=f16[b, 96], k=f16[b, 96], v=f16[b, 96]
def causal(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

# mugraph: b=1..64, q=f16[2, b, 96], k=f16[2, 80, 96], v=f16[2, 80, 96]
def first_keys(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

# mugraph: b=1..64, q=f16[2, b, 96], k=f16[2, b, 96], v=f16[2, b, 96]
def softened(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


# mugraph: b=1..64, q=f16[2, b, 96], w=f16[96, 96]
def after(q, w):
    found = torch.add(q, w[0], alpha=q.shape[1])
    return torch.relu(torch.relu(found @ w) @ w)

# mugraph: b=1..64, x=f16[4, b, 192], y=f16[4, b, 32], w=f16[128, 80]
def parts(x, y, w):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((torch.relu(first) * second, y), dim=-1) @ w

# mugraph: b=1..64, x=f16[2 * b, 96], w=f16[96, 80]
def rows_in_two(x, w):
    first, second = x.chunk(2)
    return (torch.relu(first) * second) @ w

# mugraph: b=1..64, x=f16[4, b, 96], rows=f16[64, 96], more=f16[72, 96], w=f16[96, 80]
def tables(x, rows, more, w):
    return (x + rows[:x.shape[1]] * more[:x.shape[1]]) @ w

# mugraph: b=1..64, x=f16[4, b, 93], rows=f16[130, 93], w=f16[93, 80]
def elsewhere(x, rows, w):
    return (x + rows[x.shape[1]:2 * x.shape[1]]) @ w

# mugraph: b=1..64, y=f16[b, 80], x=f16[b, 3, 64], w=f16[32, 80]
def seen_otherwise(y, x, w):
    return torch.relu(x.view(-1, 192)[:, 32:64] @ w) * y
"""


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Region]:
    path = tmp_path_factory.mktemp("ranges") / "code.py"
    path.write_text(CODE)
    trace = trace_file(path)
    assert trace.errors == ()
    assert trace_from_json(trace_to_json(trace)) == trace
    return {region.function: region for region in trace.regions}


def test_what_varies_is_found(regions: dict[str, Region]) -> None:
    region = regions["rows"]
    assert region.status is None
    assert region.dynamic is not None
    x = region.live_ins[0].value
    assert region.dynamic.shapes[x] == (Product(1, ("b",)), FIXED, FIXED)
    assert set(region.guards) == {"b == x.shape[0]", "s == 64", "d == 96"}
    assert [call.args[1] for call in region.dynamic.calls if "view" in call.target] == [multiple(Product(1, ("b",)))]
    pieces, reasons = ranged_units(region)
    assert reasons == ()
    (piece,) = [piece for piece in pieces if isinstance(piece, SearchUnit)]
    (axis,) = piece.program.least
    assert (piece.program.least[axis], piece.program.sizes[axis] % 32) == (piece.program.sizes[axis] // 32, 0)
    assert parse_program(format_program(piece.program)) == piece.program


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("branch", "b cannot have a range: relu in line 12 is called with b = 64 and not with 31"),
        ("one_size", "b cannot have a range: the code does something else with b = 17 than with 64 (line 17)"),
        ("half", "b cannot have a range: slicing in line 35 has 32, 15, 0 where it is 64, 31, 1, which is no whole"),
        ("scaled", "b cannot have a range: div in line 39 is given a number that is computed from it"),
        ("triangle", "b cannot have a range: tril in line 43 makes a mask along it that is another one at each size"),
        ("fixed", "b cannot have a range: with b = 31: fixed raises RuntimeError"),
        ("unused", "no argument of unused has the size “b”"),
    ],
)
def test_what_cannot_vary_says_why(regions: dict[str, Region], function: str, said: str) -> None:
    region = regions[function]
    assert region.status is not None
    assert region.dynamic is None
    assert said in str(region.reason)


JOINED = """
import torch

# mugraph: t=1..8, t0=1..90, q=f16[2, t, 32], k=f16[2, t, 32], past=f16[2, t0, 32]
def behind(q, k, past):
    seen = torch.cat((past, k), dim=1)
    return torch.softmax(q @ seen.mT, -1) @ seen, seen

# mugraph: t=1..8, t0=1..90, q=f16[2, t, 32], seen=f16[2, t0 + t, 32]
def together(q, seen):
    return torch.softmax(q @ seen.mT, -1) @ seen

# mugraph: t0=1..90, q=f16[2, 4, 32], seen=f16[2, 2 * t0 + 4, 32]
def offset(q, seen):
    return torch.softmax(q @ seen.mT, -1) @ seen
"""


@pytest.mark.parametrize(
    ("function", "sizes", "read"),
    [
        ("behind", {8: 1, 98: 2}, {"t": "k.shape[1]", "t0": "past.shape[1]"}),
        ("together", {8: 1, 98: 2}, {"t": "q.shape[1]", "t0": "seen.shape[1] - q.shape[1]"}),
        ("offset", {184: 6}, {"t0": "seen.shape[1] // 2 - 2"}),
    ],
)
def test_keys_that_are_a_sum_of_sizes(
    tmp_path: Path, function: str, sizes: dict[int, int], read: dict[str, str]
) -> None:
    (tmp_path / "joined.py").write_text(JOINED)
    traced = trace_file(tmp_path / "joined.py")
    assert trace_from_json(trace_to_json(traced)) == traced
    (region,) = [one for one in traced.regions if one.function == function]
    assert region.status is None, region.reason
    assert region.dynamic is not None
    assert size_texts(region, region.dynamic) == read
    pieces, _ = ranged_units(region)
    program = next(piece.program for piece in reversed(pieces) if isinstance(piece, SearchUnit))
    assert {program.sizes[axis]: least for axis, least in program.least.items()} == sizes


def test_a_constant_of_the_size_is_left_to_pytorch(regions: dict[str, Region]) -> None:
    region = regions["averaged"]
    pieces, reasons = ranged_units(region)
    assert not any(isinstance(piece, SearchUnit) for piece in pieces)
    number = "a number that depends on it (64 with b = 64, 31 with 31)"
    assert reasons == (f"b cannot have a range: add in line 23 computes with {number}",)


def test_a_mask_that_begins_at_a_corner_at_every_size(regions: dict[str, Region]) -> None:
    pieces, _ = ranged_units(regions["first_keys"])
    (unit,) = [piece for piece in pieces if isinstance(piece, SearchUnit)]
    assert [(op.fn, op.value) for op in unit.program.ops if op.kind is Kind.MASK] == [("first", 0.0)]


def test_a_range_ends_where_a_table_is_full(regions: dict[str, Region]) -> None:
    """At that size the part is the table itself, which is another tensor than a part of it."""
    region = regions["tables"]
    assert region.dynamic is not None
    assert str(region.dynamic.range) == "b = 1..63"
    (piece,), reasons = ranged_units(region)
    assert reasons == ()
    assert isinstance(piece, SearchUnit)
    assert piece.general_views is not None
    assert sorted(shapes[0].text({"b": "b"}) for shapes in piece.general_views.shapes.values()) == ["b", "b"]


def test_a_part_that_begins_at_another_place_with_each_size_is_left_to_pytorch(regions: dict[str, Region]) -> None:
    _, reasons = ranged_units(regions["elsewhere"])
    assert any("begins at another place with each size" in reason for reason in reasons)


EMPTY_ROWS = """\
import torch

# mugraph: kept=1..40, b=1..64, s=kept + b, q=f16[2, b, 96], k=f16[2, s, 96]
def empty_rows(q, k):
    hidden = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).triu(6)
    return torch.softmax((q @ k.mT).masked_fill(~hidden, float("-inf")), -1) @ k
"""


def test_a_mask_that_hides_all_of_a_row_at_some_sizes_is_left_to_pytorch(tmp_path: Path) -> None:
    path = tmp_path / "empty_rows.py"
    path.write_text(EMPTY_ROWS)
    (region,) = trace_file(path).regions
    pieces, reasons = ranged_units(region)
    assert any("hide" in reason for reason in reasons)
    masks = [op for piece in pieces if isinstance(piece, SearchUnit) for op in piece.program.ops]
    assert all(op.kind is not Kind.MASK for op in masks)


def test_what_follows_a_part_that_cannot_vary_has_a_kernel(regions: dict[str, Region]) -> None:
    pieces, reasons = ranged_units(regions["after"])
    assert reasons
    assert any(isinstance(piece, SearchUnit) for piece in pieces), "what follows it has a kernel nevertheless"


@pytest.mark.parametrize("function", ["causal", "softened"])
def test_attention_over_as_many_queries_as_keys(regions: dict[str, Region], function: str) -> None:
    """A causal mask is the same at all sizes; of the scores, which grow with the square, no code sees the strides."""
    region = regions[function]
    assert region.status is None, region.reason
    (piece,), reasons = ranged_units(region)
    assert reasons == ()
    assert isinstance(piece, SearchUnit)
    assert [piece.program.sizes[axis] for axis in piece.program.least] == [64, 64]
    assert region.dynamic is not None
    at = values_at(region, region.dynamic, 7).values()
    assert function == "causal" or any((info.shape, info.strides) == ((2, 7, 7), (49, 7, 1)) for info in at)


def test_the_text_of_a_program_has_the_range(regions: dict[str, Region], tmp_path: Path) -> None:
    pieces, _ = ranged_units(regions["rows"])
    texts = [format_program(piece.program) for piece in pieces if isinstance(piece, SearchUnit)]
    assert any("1..32" in text or "64..2048" in text for text in texts)


def test_parts_along_other_axes_are_read_as_views(regions: dict[str, Region]) -> None:
    (piece,), reasons = ranged_units(regions["parts"])
    assert reasons == ()
    assert isinstance(piece, SearchUnit)
    assert len(piece.views) > 1
    assert piece.general_views is not None
    assert [call.args for call in piece.general_views.calls] == [call.args for call in piece.views]
    region = with_views(regions["parts"], [piece])
    assert region.dynamic is not None
    at = values_at(region, region.dynamic, 31)
    parts = [at[call.outputs[0]] for call in piece.views]
    assert {(info.shape[:2], info.strides) for info in parts if len(info.shape) == 3} == {((4, 31), (31 * 192, 192, 1))}
    assert all(info.shape[1] == 80 for info in parts if len(info.shape) == 2)
    assert {call.outputs for call in region.dynamic.calls} >= {call.outputs for call in piece.views}


def test_a_part_of_another_shape_has_the_size_in_it(regions: dict[str, Region]) -> None:
    (piece,), reasons = ranged_units(regions["seen_otherwise"])
    assert reasons == ()
    assert isinstance(piece, SearchUnit)
    (axis,) = piece.program.least
    assert (piece.program.least[axis], piece.program.sizes[axis]) == (1, 64)


def test_halves_along_the_size_are_views_whose_memory_is_aligned(regions: dict[str, Region]) -> None:
    (piece,), reasons = ranged_units(regions["rows_in_two"])
    assert reasons == ()
    assert isinstance(piece, SearchUnit)
    assert piece.general_views is not None
    assert [call.args[1] for call in piece.general_views.calls] == [
        slice(None, multiple(Product(1, ("b",)))),
        slice(multiple(Product(1, ("b",))), None),
    ]
