"""Tensors at other sizes: the part of a cache that is in use grows, and the cache does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.transforms.resizing import resize_tensor

SIZE = st.integers(1, 9)


@given(heads=SIZE, length=st.integers(2, 30), width=SIZE, beyond=st.integers(1, 20), shorter=st.integers(1, 30))
def test_what_lies_beyond_a_part_that_varies_stays(
    heads: int, length: int, width: int, beyond: int, shorter: int
) -> None:
    whole = (length + beyond) * width
    part = Tensor("keys", (("h",), ("t",), ("d",)), (whole, width, 1), "f16")
    old = {"h": heads, "t": length, "d": width}
    new = {**old, "t": min(shorter, length)}
    found = resize_tensor(part, old, new, ("t",))
    for axis, (size, had, has) in enumerate(zip(part.shape(old), part.strides, found.strides, strict=True)):
        assert size == 1 or had == has, axis


@given(sizes=st.tuples(SIZE, SIZE, SIZE), others=st.tuples(SIZE, SIZE, SIZE), varying=st.sets(st.sampled_from("htd")))
def test_what_has_no_gaps_gets_none(
    sizes: tuple[int, int, int], others: tuple[int, int, int], varying: set[str]
) -> None:
    old, new = (dict(zip("htd", some, strict=True)) for some in (sizes, others))
    dims = (("h",), ("t",), ("d",))
    tensor = Tensor("x", dims, contiguous_strides(dims, old), "f16")
    found = resize_tensor(tensor, old, new, varying)
    fresh = contiguous_strides(dims, new)
    assert all(n == 1 or one == two for n, one, two in zip(found.shape(new), found.strides, fresh, strict=True))
