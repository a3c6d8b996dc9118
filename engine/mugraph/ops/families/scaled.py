"""Products of matrices of float8 numbers, each with scales: what is multiplied is the numbers, and the sums are scaled.

Scales are one number of a matrix, or one of each of its rows (of the right one, of each column).
"""

from __future__ import annotations

from math import prod

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers

_FLOAT8 = ("f8e4m3", "f8e5m2")
_OF_TENSORS, _OF_ROWS = (0,), (1,)
"""Recipes of torch.nn.functional.scaled_mm, as its enumeration counts them."""
_RECIPES = ("TensorWise", "RowWise", "BlockWise1x16", "BlockWise1x32", "BlockWise1x128", "BlockWise128x128")


@lowers(
    "torch._scaled_mm",
    parameters="input mat2 scale_a scale_b bias scale_result out_dtype use_fast_accum",
    in_part=True, in_float32=True, in_float8=True,
)  # fmt: skip
def scaled_mm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if args.has("scale_result"):
        raise NotLowerable("torch._scaled_mm with a scale of its result is outside the fragment")
    one, other = args.ref("scale_a"), args.ref("scale_b")
    rows, columns = (b.atoms.elements(dim) for dim in dims)
    shapes = b.shape(one), b.shape(other)
    if shapes != ((rows, 1), (1, columns)) and (prod(shapes[0]), prod(shapes[1])) != (1, 1):
        raise NotLowerable(f"torch._scaled_mm with scales of blocks, of shapes {shapes[0]} and {shapes[1]}, is outside "
                           "the fragment")  # fmt: skip
    return _scaled(b, args, dims, one, other)


@lowers(
    "torch._scaled_mm_v2",
    parameters="input mat2 scale_a recipe_a swizzle_a scale_b recipe_b swizzle_b bias out_dtype contraction_dim "
    "use_fast_accum",
    in_part=True, in_float32=True, in_float8=True,
)  # fmt: skip
def scaled_mm_by_recipe(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """As torch.nn.functional.scaled_mm calls it."""
    rows, columns = (b.atoms.elements(dim) for dim in dims)
    scales: list[Ref] = []
    for side, own in (("a", (rows, 1)), ("b", (1, columns))):
        recipe, given = args.integers(f"recipe_{side}") or (), args.refs(f"scale_{side}")
        if len(given) != 1 or recipe not in (_OF_TENSORS, _OF_ROWS):
            named = ", ".join(_RECIPES[n] if n < len(_RECIPES) else str(n) for n in recipe)
            raise NotLowerable(f"torch.nn.functional.scaled_mm by the recipe {named} is outside the fragment")
        shape = b.shape(given[0])
        if prod(shape) != 1 if recipe == _OF_TENSORS else shape != own:
            raise NotLowerable(f"torch.nn.functional.scaled_mm with scales of shape {shape} is outside the fragment")
        if any(args.integers(f"swizzle_{side}") or ()):
            raise NotLowerable("torch.nn.functional.scaled_mm with swizzled scales is outside the fragment")
        scales.append(given[0])
    if args.integers("contraction_dim"):
        raise NotLowerable("torch.nn.functional.scaled_mm along named dimensions is outside the fragment")
    return _scaled(b, args, dims, *scales)


def _scaled(b: Builder, args: Arguments, dims: AtomDims, scale_a: Ref, scale_b: Ref) -> Node:
    """use_fast_accum allows sums of fewer digits; these are float32's."""
    x, y = args.ref("input"), args.ref("mat2")
    for ref, types in ((x, _FLOAT8), (y, _FLOAT8), (scale_a, ("f32",)), (scale_b, ("f32",))):
        if (dtype := b.values[ref.value].dtype) not in types:
            what = "scales" if ref in (scale_a, scale_b) else "a matrix"
            raise NotLowerable(f"{args.call.target} with {what} of type {dtype} is outside the fragment")
    rows, columns = dims
    k = b.fresh(b.shape(x)[-1], "k", 3)
    found = b.dot(b.at(x, (rows, k)), b.at(y, (k, columns)), k)
    for scale in (scale_a, scale_b):
        shape = b.shape(scale)
        found = b.mul(found, b.at(scale, ((),) * len(shape)) if prod(shape) == 1 else b.broadcast(scale, dims))
    bias = args.optional("bias")
    return found if bias is None else b.add(found, b.broadcast(bias, dims))
