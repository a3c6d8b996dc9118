"""The steps of an einsum: which products, of which sizes, and what is between them."""

from __future__ import annotations

from math import prod

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from mugraph.baseline.contractions import contractions
from mugraph.baseline.launches import launches
from mugraph.ir.calls import Call, Ref, TensorInfo
from mugraph.ir.library import Product
from mugraph.ir.region import Position, Range

RANGE = Range(Position(0, 0), Position(0, 1))
SIZES = {"a": 2, "b": 3, "c": 5, "d": 7}


def info(*shape: int) -> TensorInfo:
    return TensorInfo(shape, tuple(prod(shape[at + 1 :]) for at in range(len(shape))), "f32")


def test_an_index_is_summed_by_the_last_step_that_has_it() -> None:
    found = contractions("bchn,bshn,bhcs,bshp->bchp", [(4, 6, 2, 8), (4, 6, 2, 8), (4, 2, 6, 6), (4, 6, 2, 3)])
    assert found is not None
    assert [step.product for step in found] == [Product(8, 6, 6, 8), None, Product(8, 6, 3, 6)]
    assert [step.elements for step in found] == [4 * 6 * 6 * 2, 4 * 6 * 6 * 2, 4 * 6 * 2 * 3]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ab,bc", [(2, 3), (3, 4)]), ("...ab,bc->...ac", [(2, 3), (3, 4)]), ("ab->ba", [(2, 3)]), ("ab,bc->ac", [(2, 3)])],
)
def test_what_is_not_read(equation: str, shapes: list[tuple[int, ...]]) -> None:
    assert contractions(equation, shapes) is None


@given(
    st.lists(
        st.permutations("abcd").flatmap(lambda s: st.integers(1, 4).map(lambda n: "".join(s[:n]))),
        min_size=2,
        max_size=4,
    ),
    st.sets(st.sampled_from("abcd")),
)
def test_the_last_step_makes_the_result(names: list[str], kept: set[str]) -> None:
    result = "".join(sorted(kept.intersection(*[set("".join(names))])))
    shapes = [tuple(SIZES[index] for index in name) for name in names]
    steps = contractions(",".join(names) + "->" + result, shapes)
    assert steps is not None
    assert len(steps) == len(names) - 1
    made = torch.einsum(",".join(names) + "->" + result, *(torch.ones(shape) for shape in shapes))
    assert steps[-1].elements == made.numel()
    for step in steps:
        product = step.product
        assert product is None or product.matrices * product.rows * product.columns == step.elements
    # Of ones, each element of the result counts the terms that were added up.
    terms = prod(step.product.depth for step in steps if step.product is not None)
    assert made.flatten()[0].item() == terms


def test_each_step_is_a_kernel_that_reads_what_the_one_before_it_has_left() -> None:
    values = {0: info(4, 6, 2, 8), 1: info(4, 2, 6), 2: info(4, 6, 2, 3), 3: info(4, 2, 3, 8)}
    call = Call("torch.einsum", ("bshn,bhs,bshp->bhpn", Ref(0), Ref(1), Ref(2)), {}, (3,), RANGE)
    first, second = launches([call], values)
    assert (first.work, second.work) == ("elementwise", "product")
    assert second.products == (Product(8, 8, 3, 6),)
    (left,) = first.writes
    assert left not in values
    assert first.reads == {0: 4 * 4 * 6 * 2 * 8, 1: 4 * 4 * 2 * 6}
    assert second.reads == {**first.writes, 2: 4 * 4 * 6 * 2 * 3}
    assert set(second.writes) == {3}
