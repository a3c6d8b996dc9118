"""Rows at an index are part of a kernel where its products read them once; elsewhere PyTorch copies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.lookups import Lookup
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.ir.spec import check_program
from mugraph.ir.text import format_program, parse_program
from mugraph.ir.text.lines import TextError
from mugraph.ir.transforms.renaming import canonical, key_of
from mugraph.ir.windows import Window
from mugraph.trace.tracer import trace_file
from mugraph.units.joining import units as joined

from tests.engine.units.regions import cut, meta, units

Function = Callable[..., Any]
X, W, BACK = meta(2, 64), meta(8, 96, 64), meta(8, 64, 96)
PICKS = meta(2, 2, dtype=torch.int64)


def up(x: torch.Tensor, w: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ti,taoi->tao", x, w[picks])


def mixture(x: torch.Tensor, w: torch.Tensor, back: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return torch.einsum("tao,taio->tai", torch.relu(up(x, w, picks)), back[picks])


def tables(program: TensorProgram) -> dict[str, Lookup]:
    return {tensor.source: one for tensor in program.tensors for one in tensor.looked_up.values()}


INSIDE: dict[str, tuple[Function, dict[str, torch.Tensor], tuple[Lookup, ...]]] = {
    "brackets": (up, {"x": X, "w": W, "picks": PICKS}, (Lookup("picks", "i64", 8, True, "picks"),)),
    "brackets, then all": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w[picks, :, ...]),
        {"x": X, "w": W, "picks": PICKS},
        (Lookup("picks", "i64", 8, True, "picks"),),
    ),
    "behind a dimension": (
        lambda x, w, picks: torch.einsum("ti,otai->tao", x, w[:, picks]),
        {"x": X, "w": meta(96, 8, 64), "picks": PICKS},
        (Lookup("picks", "i64", 8, True, "picks"),),
    ),
    "index_select": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w.index_select(0, picks.flatten()).view(2, 2, 96, 64)),
        {"x": X, "w": W, "picks": PICKS},
        (Lookup("picks", "i64", 8, False, "picks"),),
    ),
    "embedding of flat weights": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, F.embedding(picks, w.flatten(1)).view(2, 2, 96, 64)),
        {"x": X, "w": W, "picks": PICKS},
        (Lookup("picks", "i64", 8, False, "picks"),),
    ),
    "embedding": (
        lambda ids, table, w: F.embedding(ids, table, padding_idx=0) @ w,
        {"ids": meta(4, dtype=torch.int32), "table": meta(500, 64), "w": meta(64, 96)},
        (Lookup("ids", "i32", 500, False, "ids"),),
    ),
    "of each request": (
        lambda x, a, ids: torch.bmm(x[:, None], a[ids]).squeeze(1),
        {"x": meta(5, 64), "a": meta(9, 64, 16), "ids": meta(5, dtype=torch.int64)},
        (Lookup("ids", "i64", 9, True, "ids"),),
    ),
    "in eight bits": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w.to(x.dtype)[picks]),
        {"x": X, "w": meta(8, 96, 64, dtype=torch.int8), "picks": PICKS},
        (Lookup("picks", "i64", 8, True, "picks"),),
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_it_is_one_kernel(name: str) -> None:
    function, inputs, wanted = INSIDE[name]
    parts = cut(function, **inputs)
    (unit,) = units(parts)
    assert len(parts) == 1
    assert tuple(tables(unit.program).values()) == wanted
    (index,) = unit.program.indices
    assert unit.inputs[index.name] not in {unit.inputs[tensor.name] for tensor in unit.program.tensors}
    assert check_program(unit.program) == []
    assert unit.viewed == {}


def test_experts_are_read_by_one_unit_or_two() -> None:
    parts = cut(mixture, x=X, w=W, back=BACK, picks=PICKS)
    assert not [part for part in parts if isinstance(part, PlainCalls)]
    found = [tables(part.program) for part in parts if isinstance(part, SearchUnit)]
    assert {source for one in found for source in one} == {"w", "back"}


OUTSIDE: dict[str, tuple[Function, dict[str, torch.Tensor]]] = {
    "what is computed of it is read twice": (
        lambda ids, table, w: F.rms_norm(F.embedding(ids, table), (64,)) @ w,
        {"ids": meta(4, dtype=torch.int64), "table": meta(500, 64), "w": meta(64, 96)},
    ),
    "there is no product": (
        lambda ids, table: F.embedding(ids, table).float().relu().sum(-1),
        {"ids": meta(4, dtype=torch.int64), "table": meta(500, 64)},
    ),
    "of many rows": (
        lambda x, w, ids: x[ids] @ w,
        {"x": meta(9000, 4096), "w": meta(4096, 4096), "ids": meta(4096, dtype=torch.int64)},
    ),
    "an index of which there is a part": (
        lambda x, w, picks: torch.einsum("ti,toi->to", x, w[picks[:, 0]]),
        {"x": X, "w": W, "picks": PICKS},
    ),
    "an index that lies otherwise": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w[picks.t()]),
        {"x": X, "w": W, "picks": PICKS},
    ),
    "an index into what is repeated": (
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w.expand(8, 96, 64)[picks]),
        {"x": X, "w": meta(96, 64), "picks": PICKS},
    ),
    "two indices": (
        lambda x, w, picks: torch.einsum("ti,tai->ta", x, w[picks, picks]),
        {"x": X, "w": W, "picks": PICKS},
    ),
    "an embedding that changes its rows": (
        lambda ids, table, w: F.embedding(ids, table, max_norm=1.0) @ w,
        {"ids": torch.zeros(4, dtype=torch.int64), "table": torch.zeros(50, 64), "w": torch.zeros(64, 96)},
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_rest_is_copied_by_pytorch(name: str) -> None:
    function, inputs = OUTSIDE[name]
    parts = cut(function, **inputs)
    assert all(tables(part.program) == {} for part in parts if isinstance(part, SearchUnit))


@pytest.mark.parametrize(
    ("table", "code", "read"),
    [
        ("8, 96, 64", "torch.einsum('ti,taoi->tao', x, w[picks])", True),
        ("96, 8, 64", "torch.einsum('ti,otai->tao', x, w[:, picks])", False),  # inside of other rows
    ],
)
def test_where_sizes_vary_they_are_read_of_the_outermost_dimension(
    tmp_path: Path, table: str, code: str, read: bool
) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        f"""\
import torch

# mugraph: t=1..7, x=f16[t, 64], w=f16[{table}], picks=i64[t, 2]
def up(x, w, picks):
    return {code}
"""
    )
    (region,) = trace_file(path).regions
    (unit,) = units(joined(region))
    assert region.dynamic is not None
    assert bool(tables(unit.program)) == read


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, w[picks * 2]),
        lambda x, w, picks: torch.einsum("ti,taoi->tao", x, (w + 1.0)[picks]),
    ],
)
def test_what_is_computed_for_it_is_there_before(function: Function) -> None:
    parts = cut(function, x=X, w=W, picks=PICKS)
    (unit,) = units(parts)
    assert [len(part.calls) for part in parts if isinstance(part, PlainCalls)] == [1]
    assert len(tables(unit.program)) == 1


def program() -> TensorProgram:
    (unit,) = units(cut(up, x=X, w=W, picks=PICKS))
    return unit.program


def test_it_is_written_and_read() -> None:
    text = format_program(program())
    assert 'tensor w f16[rows t*a, o, i] from "w" by picks i64 of 8 wraps from "picks"' in text
    assert parse_program(text) == program()
    assert program_from_json(program_to_json(program())) == program()
    for old, new, why in (
        (' by picks i64 of 8 wraps from "picks"', "", "needs an index"),
        ("rows t*a", "t*a", "no dimension of rows"),
        ("i64 of 8", "f16 of 8", "an index is of i64 or i32"),
    ):
        with pytest.raises(TextError, match=why):
            parse_program(text.replace(old, new))


def test_names_do_not_matter() -> None:
    def other(v: torch.Tensor, table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nk,nmok->nmo", v, table[rows])

    (unit,) = units(cut(other, v=X, table=W, rows=PICKS))
    assert canonical(unit.program)[0] == canonical(program())[0]
    assert key_of(unit.program)[0] == key_of(program())[0]
    assert canonical(canonical(program())[0])[0] == canonical(program())[0]


def test_how_many_rows_there_are_matters_and_which_end_they_are_counted_from() -> None:
    for w, function in ((meta(9, 96, 64), up), (W, INSIDE["index_select"][0])):
        (unit,) = units(cut(function, x=X, w=w, picks=PICKS))
        assert key_of(unit.program)[0] != key_of(program())[0]


def changed(**fields: Any) -> TensorProgram:
    tensors = tuple(
        replace(tensor, windows=tuple(replace(window, **fields) for window in tensor.windows))
        for tensor in program().tensors
    )
    return replace(program(), tensors=tensors)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"stride": 2}, "looks rows up, and does more"),
        ({"lookup": Lookup("picks", "i64", 1)}, "fewer than two rows"),
        ({"lookup": Lookup("picks", "f16", 8)}, "an index of type f16"),
    ],
)
def test_what_an_index_cannot_be_is_said(fields: dict[str, Any], why: str) -> None:
    assert any(why in one for one in check_program(changed(**fields)))
    assert Window(0, 0).lookup is None
