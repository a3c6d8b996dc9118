"""Functions of `triton.language` that reduce or multiply tiles along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import TF32
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.ints import Ints, Shape
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tiles import Floats, Kind, Pointers, Tile, common, is_known, stretched

Function = Callable[..., Any]


def kind_of(value: Any, default: str = "float32") -> str:
    match value:
        case Kind(name):
            return name
        case None:
            return default
        case _:
            raise Unreadable(f"{value} is no type")


def _axes(tile: Tile, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(tile.shape)))
    if not isinstance(axis, int):
        raise Wrong("type", "the axis of a reduction is no whole number")
    if not -len(tile.shape) <= axis < len(tile.shape):
        raise Wrong("type", f"a tile of shape {list(tile.shape)} has no axis {axis}")
    return (axis % len(tile.shape),)


def _reduced(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    return tuple(1 if at in axes else n for at, n in enumerate(shape) if keep or at not in axes)


def _dropped(shape: Shape, axes: tuple[int, ...], keep: bool) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def drop(array: NDArray[Any]) -> NDArray[Any]:
        of_blocks = array.ndim - len(shape)
        return array.reshape([n for at, n in enumerate(array.shape) if at - of_blocks not in axes])

    return (lambda array: array) if keep else drop


def summed(of: Arithmetic, input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Any:
    tile = of.tile(input)
    if isinstance(tile, Pointers):
        raise Wrong("type", "pointers are added up")
    axes = _axes(tile, axis)
    shape, drop = _reduced(tile.shape, axes, keep_dims), _dropped(tile.shape, axes, keep_dims)
    if isinstance(tile, Floats):
        kind = kind_of(dtype, tile.kind)
        if of.reals is None or tile.real is None:
            return Floats(shape, kind, None)
        real = tile.real
        for at in axes:
            real = of.reals.sum(real, at + 1, tile.shape[at])
        return Floats(shape, kind, real.each(drop))
    whole = of.ints(tile)
    if not is_known(whole):
        return Ints(shape, ())
    found = whole.whole()
    for at in (axis - len(tile.shape) for axis in axes):
        found = found.sum(at, keepdims=True) * (tile.shape[at] if found.shape[at] == 1 else 1)
    return Ints(shape, (drop(found),), whole.kind)


def extreme(op: str) -> Function:
    def function(
        of: Arithmetic,
        input: Any,
        axis: Any = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
    ) -> Any:
        if return_indices:
            raise Unreadable(f"indices of tl.{op} are not read")
        tile = of.tile(input)
        axes = _axes(tile, axis)
        shape, drop = _reduced(tile.shape, axes, keep_dims), _dropped(tile.shape, axes, keep_dims)
        if isinstance(tile, Floats):
            if of.reals is None or tile.real is None:
                return Floats(shape, tile.kind, None)
            reals, real = of.reals, tile.real
            real = real if op == "max" else reals.negative(real)
            for at in axes:
                real = reals.amax(real, at + 1)
            real = real if op == "max" else reals.negative(real)
            return Floats(shape, tile.kind, real.each(drop))
        whole = of.ints(tile)
        if not is_known(whole):
            return Ints(shape, ())
        found = whole.whole()
        for at in (axis - len(tile.shape) for axis in axes):
            found = found.max(at, keepdims=True) if op == "max" else found.min(at, keepdims=True)
        return Ints(shape, (drop(found),), whole.kind)

    return function


def cumsum(of: Arithmetic, input: Any, axis: Any = 0, reverse: bool = False, dtype: Any = None) -> Any:
    tile = stretched(of.tile(input))
    (at,) = _axes(tile, axis)

    def turned(array: NDArray[Any]) -> NDArray[Any]:
        return np.flip(array, at - len(tile.shape)) if reverse else array

    if isinstance(tile, Floats):
        if of.reals is None or tile.real is None:
            return Floats(tile.shape, tile.kind, None)
        return Floats(tile.shape, tile.kind, of.reals.cumsum(tile.real.each(turned), at + 1).each(turned))
    whole = of.ints(tile)
    found = (turned(turned(whole.whole()).cumsum(at - len(tile.shape))),) if is_known(whole) else ()
    return Ints(tile.shape, found, whole.kind)


def dot(
    of: Arithmetic,
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Floats:
    a, b = of.tile(input), of.tile(other)
    if not isinstance(a, Floats) or not isinstance(b, Floats):
        raise Unreadable("tl.dot of integers is not read")
    if a.kind != b.kind:
        raise Wrong("type", f"tl.dot of {a.kind} and {b.kind}")
    if len(a.shape) not in (2, 3) or len(a.shape) != len(b.shape) or a.shape[-1] != b.shape[-2]:
        raise Wrong("type", f"tl.dot of tiles of shapes {list(a.shape)} and {list(b.shape)}")
    cut = input_precision == TF32 or (input_precision is None and allow_tf32 is not False)  # as Triton has it
    if cut and a.kind == "float32":
        a, b = of.to_tf32(a), of.to_tf32(b)
    shape = (*common(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    kind = kind_of(out_dtype, "float32")
    found = Floats(shape, kind, None)
    if of.reals is not None and a.real is not None and b.real is not None:
        inner = a.shape[-1]
        one = a.real.each(lambda x: np.broadcast_to(x, (*x.shape[:-1], inner)))
        two = b.real.each(lambda x: np.broadcast_to(x, (*x.shape[:-2], inner, x.shape[-1])))
        found = Floats(shape, kind, of.reals.dot(one, two))
    if acc is None:
        return found
    if isinstance(acc, Floats) and acc.shape != shape:
        raise Wrong("type", f"tl.dot of shape {list(shape)} is added to {list(acc.shape)}")
    total = of.binary("+", found, acc)
    assert isinstance(total, Floats)
    return total
