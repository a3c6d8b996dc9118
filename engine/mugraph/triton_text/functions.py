"""Functions of `triton.language` on tiles, except those that touch memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import exp2, inf, log2, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.kinds import Kind as Kinds
from mugraph.triton_text.approximations import NUMBERS_OF, ON_BYTES, TO_TF32
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.ints import Ints, Shape
from mugraph.triton_text.reals import LN_2, Real
from mugraph.triton_text.reductions import Function, cumsum, dot, extreme, kind_of, summed
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import Named, listed
from mugraph.triton_text.tiles import Floats, Kind, Tile, common, is_known, of_shape, rearranged, stretched, triton_name


def _shape(value: Any) -> Shape:
    sizes = listed(value)
    if not all(isinstance(size, int) for size in sizes):
        raise Unreadable("the shape of a tile depends on what is computed")
    return sizes


def full(of: Arithmetic, shape: Any, value: Any, dtype: Any) -> Tile:
    kind = kind_of(dtype)
    tile = of.cast(float(value) if isinstance(value, int) and Kind(kind).is_float else value, kind)
    return of_shape(tile, _shape(shape))


def zeros(of: Arithmetic, shape: Any, dtype: Any = None) -> Tile:
    return full(of, shape, 0, dtype or Kind("float32"))


def zeros_like(of: Arithmetic, input: Any, **_: Any) -> Tile:
    tile = of.tile(input)
    return full(of, tile.shape, 0, Kind(tile.kind if isinstance(tile, Floats | Ints) else "int1"))


def full_like(of: Arithmetic, input: Any, value: Any, **_: Any) -> Tile:
    tile = of.tile(input)
    return full(of, tile.shape, value, Kind(tile.kind if isinstance(tile, Floats | Ints) else "int1"))


def arange(of: Arithmetic, start: Any, end: Any) -> Ints:
    if not isinstance(start, int) or not isinstance(end, int) or end <= start:
        raise Wrong("type", "the ends of tl.arange are no numbers, or not in order")
    size = end - start
    if size & (size - 1):
        raise Wrong("type", f"tl.arange has {size} elements, which is no power of two")
    return Ints((size,), (np.arange(start, end, dtype=np.int64)[None],))


def where(of: Arithmetic, condition: Any, x: Any, y: Any) -> Tile:
    return of.chosen(of.bools(condition), x, y)


def _propagates(value: Any) -> bool:
    return isinstance(value, Named) and value.name.endswith("PropagateNan.ALL")


def maximum(of: Arithmetic, x: Any, y: Any, propagate_nan: Any = None) -> Any:
    return _larger(of, x, y, "max", propagate_nan)


def minimum(of: Arithmetic, x: Any, y: Any, propagate_nan: Any = None) -> Any:
    return _larger(of, x, y, "min", propagate_nan)


def _larger(of: Arithmetic, x: Any, y: Any, op: str, propagate_nan: Any = None) -> Any:
    if isinstance(x, int | float) and isinstance(y, int | float):
        return max(x, y) if op == "max" else min(x, y)
    one, two = of.tile(x), of.tile(y)
    shape = common(one.shape, two.shape)
    if not isinstance(one, Floats) and not isinstance(two, Floats):
        return of.of_ints(op, of.ints(one), of.ints(two), shape)
    a, b = of.floats(x), of.floats(y)
    kind = a.kind if isinstance(x, Floats) else b.kind
    first, second = of_shape(a, shape), of_shape(b, shape)
    assert isinstance(first, Floats)
    assert isinstance(second, Floats)
    if of.reals is None or first.real is None or second.real is None:
        return Floats(shape, kind, None)
    larger = of.reals.maximum if op == "max" else of.reals.minimum
    return Floats(shape, kind, larger(first.real, second.real, propagate=_propagates(propagate_nan)))


def clamp(of: Arithmetic, x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Any:
    return minimum(of, maximum(of, x, min, propagate_nan), max, propagate_nan)


def _unary(how: Callable[[Arithmetic, Real], Real], folded: Callable[[float], float] | None = None) -> Function:
    def function(of: Arithmetic, x: Any, **_: Any) -> Any:
        if isinstance(x, int | float) and folded is not None:
            return folded(x)
        tile = of.floats(x)
        if of.reals is None or tile.real is None:
            return Floats(tile.shape, tile.kind, None)
        return Floats(tile.shape, tile.kind, how(of, tile.real))

    return function


def _named_function(name: str) -> Function:
    return _unary(lambda of, x: _reals(of).unary(name, x))


def _opaque(kind: Kinds) -> Function:
    """A kind that is known by its numbers alone (approximations.py)."""

    def function(of: Arithmetic, *given: Any, **_: Any) -> Any:
        tiles = [of.floats(x) for x in given]
        shape = tiles[0].shape if len(tiles) == 1 else common(tiles[0].shape, tiles[1].shape)
        name = triton_name(kind.stored) if kind.stored else "float32"
        wide = [of_shape(tile, shape) for tile in tiles]
        reals = [tile.real for tile in wide if isinstance(tile, Floats) and tile.real is not None]
        if of.reals is None or len(reals) < len(tiles):
            return Floats(shape, name, None)
        return Floats(shape, name, of.reals.opaque(kind, *reals))

    return function


def _reals(of: Arithmetic) -> Any:
    return of.reals


def _exp2(of: Arithmetic, x: Real) -> Real:
    reals = _reals(of)
    return reals.exp(reals.mul(x, reals.constant(LN_2, x.p.ndim - 1), None, LN_2))


def _rsqrt(of: Arithmetic, x: Real) -> Real:
    reals = _reals(of)
    return reals.div(reals.constant(1.0, x.p.ndim - 1), reals.sqrt(x))


def _expm1(of: Arithmetic, x: Real) -> Real:
    reals = _reals(of)
    return reals.add(reals.exp(x), reals.constant(-1.0, x.p.ndim - 1))


def _log(scale: float) -> Callable[[Arithmetic, Real], Real]:
    def log(of: Arithmetic, x: Real) -> Real:
        reals = _reals(of)
        found = reals.unary("log", x)
        return found if scale == 1 else reals.mul(found, reals.constant(scale, x.p.ndim - 1), None, scale)

    return log


def absolute(of: Arithmetic, x: Any) -> Any:
    if isinstance(x, int | float):
        return abs(x)
    tile = of.tile(x)
    if not isinstance(tile, Floats):
        whole = of.ints(tile)
        return Ints(tile.shape, (np.abs(whole.whole()),) if is_known(whole) else (), whole.kind)
    if of.reals is None or tile.real is None:
        return Floats(tile.shape, tile.kind, None)
    return Floats(tile.shape, tile.kind, of.reals.unary("abs", tile.real))


def fma(of: Arithmetic, x: Any, y: Any, z: Any) -> Any:
    return of.binary("+", of.binary("*", x, y), z)


def _divided(of: Arithmetic, x: Any, y: Any, ieee_rounding: Any = None) -> Any:
    return x / y if isinstance(x, int | float) and isinstance(y, int | float) else of.binary("/", x, y)


def cdiv(of: Arithmetic, x: Any, div: Any) -> Any:
    if isinstance(x, int) and isinstance(div, int):
        return -(-x // div)
    return of.binary("//", of.binary("+", x, of.binary("-", div, 1)), div)


def next_power_of_2(of: Arithmetic, n: Any) -> int:
    if not isinstance(n, int) or n < 1:
        raise Unreadable("the next power of two of what is no number")
    return 1 << (n - 1).bit_length()


def swizzle2d(of: Arithmetic, i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """As triton.language.standard has it."""

    def do(op: str, a: Any, b: Any) -> Any:
        return of.binary(op, a, b)

    ij = do("+", do("*", i, size_j), j)
    size_gj = do("*", size_g, size_j)
    first = do("*", do("//", ij, size_gj), size_g)
    group = minimum(of, do("-", size_i, first), size_g)
    ij = do("%", ij, size_gj)
    return do("+", first, do("%", ij, group)), do("//", ij, group)


# --- shapes


def expand_dims(of: Arithmetic, input: Any, axis: Any) -> Tile:
    tile = of.tile(input)
    for at in sorted(listed(axis)):
        rank = len(tile.shape) + 1
        place = at % rank
        shape = (*tile.shape[:place], 1, *tile.shape[place:])
        tile = rearranged(tile, shape, partial(np.expand_dims, axis=place - rank))
    return tile


def indexed(of: Arithmetic, tile: Tile, key: Any) -> Tile:
    """tile[:, None] and its like."""
    keys = listed(key)
    place = 0
    for one in keys:
        if one is None:
            tile = expand_dims(of, tile, place)
        elif not (isinstance(one, slice) and one == slice(None)):
            raise Unreadable("an element of a tile is taken")
        place += 1
    if place != len(tile.shape):
        raise Wrong("type", f"{place} indices are given to a tile of shape {list(tile.shape)}")
    return tile


def _spread(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that may be given one by one, or as one sequence."""
    return listed(values[0]) if len(values) == 1 else values


def broadcast_to(of: Arithmetic, input: Any, *shape: Any) -> Tile:
    return of_shape(of.tile(input), _shape(_spread(shape)))


def broadcast(of: Arithmetic, input: Any, other: Any) -> tuple[Tile, Tile]:
    one, two = of.tile(input), of.tile(other)
    shape = common(one.shape, two.shape)
    return of_shape(one, shape), of_shape(two, shape)


def permute(of: Arithmetic, input: Any, *dims: Any) -> Tile:
    tile = of.tile(input)
    order = _spread(dims) or tuple(reversed(range(len(tile.shape))))
    if sorted(order) != list(range(len(tile.shape))):
        raise Wrong("type", f"{list(order)} is no order of the dimensions of a tile of shape {list(tile.shape)}")
    shape = tuple(tile.shape[at] for at in order)

    def moved(array: NDArray[Any]) -> NDArray[Any]:
        of_blocks = array.ndim - len(order)
        return np.transpose(array, (*range(of_blocks), *(of_blocks + at for at in order)))

    return rearranged(tile, shape, moved)


def reshape(of: Arithmetic, input: Any, *shape: Any, can_reorder: Any = False) -> Tile:
    if can_reorder:
        raise Unreadable("tl.reshape with can_reorder is not read")
    tile = stretched(of.tile(input))
    sizes = _shape(_spread(shape))
    if prod(sizes) != prod(tile.shape):
        raise Wrong("type", f"a tile of shape {list(tile.shape)} is reshaped to {list(sizes)}")

    def shaped(array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(*array.shape[: array.ndim - len(tile.shape)], *sizes)

    return rearranged(tile, sizes, shaped)


def split(of: Arithmetic, a: Any) -> tuple[Tile, Tile]:
    """The two elements of a tile's last dimension."""
    tile = stretched(of.tile(a))
    *shape, last = tile.shape or (0,)
    if last != 2:
        raise Wrong("type", f"a tile of shape {list(tile.shape)} is split, whose last dimension has no two elements")

    def one(place: int) -> Tile:
        def taken(array: NDArray[Any]) -> NDArray[Any]:
            return array[..., place]

        return rearranged(tile, tuple(shape), taken)

    return one(0), one(1)


def ravel(of: Arithmetic, x: Any) -> Tile:
    return reshape(of, x, (prod(of.tile(x).shape),))


def cast(of: Arithmetic, input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    if bitcast:
        raise Unreadable("the bits of a number are read as another type")
    return of.cast(input, kind_of(dtype))


def _to_tf32(of: Arithmetic, x: Any) -> Floats:
    return of.to_tf32(of.floats(x))


def _numbers_of(kind: str, read: str) -> Function:
    """The numbers that bytes are, all of which float16 has. kind: their type. read: that of the bytes"""

    def function(of: Arithmetic, x: Any, **_: Any) -> Floats:
        tile = _read_as(of, x, read)
        return Floats(tile.shape, kind, tile.real)

    return function


def _on_bytes(kind: Kinds) -> Function:
    def function(of: Arithmetic, x: Any, constant: Any, **_: Any) -> Floats:
        if not isinstance(constant, int) or not 0 <= constant <= 0xFF:
            raise Unreadable("a number of eight bits is wanted beside what is read as bytes")
        found = _opaque(kind)(of, _read_as(of, x, "uint8"), constant)
        return Floats(found.shape, "float16", found.real)

    return function


def _read_as(of: Arithmetic, x: Any, kind: str) -> Floats:
    tile = of.tile(x)
    if not isinstance(tile, Floats) or tile.kind != kind:
        raise Unreadable(f"numbers are made of the bits of what is no {kind}")
    return tile


def _same(of: Arithmetic, x: Any, *_: Any, **__: Any) -> Any:
    return x


def _nothing(of: Arithmetic, *_: Any, **__: Any) -> None:
    return None


def static_assert(of: Arithmetic, condition: Any, *_: Any) -> None:
    if condition is not True and condition != 1:
        raise Wrong("type", "a tl.static_assert does not hold")


FUNCTIONS: Mapping[str, Function] = {
    "tl.full": full,
    "tl.zeros": zeros,
    "tl.zeros_like": zeros_like,
    "tl.full_like": full_like,
    "tl.arange": arange,
    "tl.where": where,
    "tl.maximum": maximum,
    "tl.minimum": minimum,
    "tl.clamp": clamp,
    "tl.exp": _unary(lambda of, x: _reals(of).exp(x)),
    "tl.exp2": _unary(_exp2, exp2),
    "tl.expm1": _unary(_expm1),
    "tl.log": _unary(_log(1.0)),
    "tl.log2": _unary(_log(1 / LN_2), lambda x: log2(x) if x > 0 else -inf),
    "tl.sqrt": _unary(lambda of, x: _reals(of).sqrt(x), sqrt),
    "tl.sqrt_rn": _unary(lambda of, x: _reals(of).sqrt(x), sqrt),
    "tl.rsqrt": _unary(_rsqrt, lambda x: 1 / sqrt(x)),
    "tl.abs": absolute,
    "tl.fma": fma,
    "tl.fdiv": _divided,
    "tl.div_rn": _divided,
    "tl.cdiv": cdiv,
    "tl.swizzle2d": swizzle2d,
    "triton.cdiv": cdiv,
    "triton.next_power_of_2": next_power_of_2,
    "tl.sum": summed,
    "tl.max": extreme("max"),
    "tl.min": extreme("min"),
    "tl.cumsum": cumsum,
    "tl.dot": dot,
    "tl.expand_dims": expand_dims,
    "tl.broadcast_to": broadcast_to,
    "tl.broadcast": broadcast,
    "tl.permute": permute,
    "tl.trans": permute,
    "tl.reshape": reshape,
    "tl.split": split,
    "tl.view": reshape,
    "tl.ravel": ravel,
    "tl.cast": cast,
    "tl.constexpr": _same,
    "tl.multiple_of": _same,
    "tl.max_contiguous": _same,
    "tl.max_constancy": _same,
    "tl.assume": _nothing,
    "tl.static_print": _nothing,
    "tl.device_print": _nothing,
    "tl.device_assert": _nothing,
    "tl.static_assert": static_assert,
    TO_TF32: _to_tf32,
    **{name: _numbers_of(*kinds) for name, kinds in NUMBERS_OF.items()},
    **{name: _on_bytes(kind) for name, kind in ON_BYTES.items()},
    **{f"mugraph.{kind.name}": _opaque(kind) for kind in Kinds if kind.opaque is not None},
    **{f"tl.{name}": _named_function(name) for name in ("sigmoid", "tanh", "erf", "sin", "cos", "floor", "ceil")},
    **{f"libdevice.{name}": _named_function(name) for name in ("tanh", "erf", "sin", "cos", "log1p", "floor", "ceil")},
    **{f"libdevice.{name}": _opaque(Kinds.ROUND) for name in ("rint", "nearbyint")},
    "libdevice.exp": _unary(lambda of, x: _reals(of).exp(x)),
    "libdevice.rsqrt": _unary(_rsqrt),
    "libdevice.sqrt": _unary(lambda of, x: _reals(of).sqrt(x)),
}
"""By full name; the first argument is the arithmetic."""


METHODS: Mapping[str, str] = {
    "to": "tl.cast",
    "sum": "tl.sum",
    "max": "tl.max",
    "min": "tl.min",
    "trans": "tl.trans",
    "permute": "tl.permute",
    "reshape": "tl.reshape",
    "view": "tl.reshape",
    "ravel": "tl.ravel",
    "broadcast_to": "tl.broadcast_to",
    "expand_dims": "tl.expand_dims",
    "cast": "tl.cast",
    "abs": "tl.abs",
    "exp": "tl.exp",
    "sqrt": "tl.sqrt",
    "sigmoid": "tl.sigmoid",
    "cumsum": "tl.cumsum",
}
"""Methods of tiles, and the functions that they are."""
