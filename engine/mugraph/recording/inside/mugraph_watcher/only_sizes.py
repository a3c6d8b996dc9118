"""Whether a guard said no only because tensors have other sizes than its kernel's, and which.

The guard's checks are made once more as if each comparison of sizes had come out equal. What is left is everything else
that it asks: a call of another type, layout, mode or object is refused all the same, and is no call of other sizes.
A comparison of sizes is one of

    a tensor's shape with one of as many dimensions, or one of its sizes
    a local name of the user's that is read from a tensor's shape (read_sizes.py)
    strides of a tensor of other sizes, where it is laid out alike
    a number that a module keeps, where a parameter of its own has that size instead of the kernel's
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from .guards import Frame, Guards, Refusal
from .objects import is_module
from .tensors import is_tensor
from .values import Compared, compared

Sizes = "tuple[tuple[str, int], ...]"
"""What has another size in the user's words (`x.shape[1]`), and that size."""
MOST_NAMED = 8

_WITHOUT_MEMORY = """
def _fit_again(region, *tensors):
    return False
def _fit_from_now(region, *tensors, anywhere=()):
    return True
def _right_here(name, kind, index):
    return _right.get((name, index), True)
def _as_analysed(region, things, modules, fit):
    return _same_code(region, *things) and fit(*modules)
"""
"""What a guard asks and remembers, without asking what it remembers, nor remembering: what is made as if is not so."""
PURE: Mapping[str, ast.FunctionDef] = {
    node.name: node for node in ast.parse(_WITHOUT_MEMORY).body if isinstance(node, ast.FunctionDef)
}


def other_sizes(
    guards: Guards, name: str, space: Mapping[str, Any], given: Sequence[Any], said: Sequence[str], read: frozenset[str]
) -> tuple[tuple[str, int], ...] | None:
    """Of a call that the guard refused: the sizes that differ, or None where something else does as well. read: names
    of the user's that are sizes. Raises what is not foreseen."""
    supposed = _Supposed(read)
    if not guards.holds(name, space, given, said, supposed.equal, PURE) or not supposed.explained:
        return None
    return tuple(supposed.found.items())[:MOST_NAMED]


@dataclass
class _Supposed:
    """What was taken for equal. found: by the user's words, the size there is. shapes: by a tensor's number, the shape
    that was wanted of it. of: by a tensor's number, pairs of a size that was wanted and the one there is. numbers:
    modules' numbers that differ, with the numbers of the modules' parameters."""

    read: frozenset[str]
    found: dict[str, int] = field(default_factory=dict[str, int])
    shapes: dict[int, list[int]] = field(default_factory=dict[int, "list[int]"])
    of: dict[int, set[tuple[int, int]]] = field(default_factory=dict[int, "set[tuple[int, int]]"])
    numbers: list[tuple[tuple[int, int], list[int]]] = field(default_factory=list[tuple[tuple[int, int], "list[int]"]])

    def equal(self, refusal: Refusal) -> bool:
        """Whether a comparison that differs is one of sizes."""
        pair = compared(refusal)
        if pair is None:
            return False
        frame = refusal.frame
        left = frame.names.behind(pair.left)
        match left:
            case ast.Attribute(one, "shape") | ast.Call(ast.Attribute(one, "size"), []) if is_tensor(frame.tried(one)):
                return self._shape(frame.said(one), frame.tried(one), pair)
            case ast.Subscript(ast.Attribute(one, "shape"), ast.Constant(int(dim))) | ast.Call(
                ast.Attribute(one, "size"), [ast.Constant(int(dim))]
            ) if is_tensor(frame.tried(one)):
                return self._size(frame.said(one), frame.tried(one), dim, pair)
            case ast.Call(ast.Attribute(one, "stride"), []) if is_tensor(frame.tried(one)):
                return self._strides(frame.tried(one), pair)
            case ast.Attribute(one, _) if is_module(frame.tried(one)):
                return self._number(frame.tried(one), pair)
            case ast.Name():
                return self._named(frame, left, pair)
            case ast.BinOp():
                return self._computed(frame, left)
            case _:
                return False

    @property
    def explained(self) -> bool:
        return bool(self.found) and all(
            any(pair in self.of.get(one, ()) for one in parameters) for pair, parameters in self.numbers
        )

    def _shape(self, said: str, tensor: Any, pair: Compared) -> bool:
        wanted = _integers(pair.expected)
        if pair.range is not None or wanted is None or len(wanted) != tensor.dim():
            return False
        self.shapes[id(tensor)] = wanted
        for dim, (size, other) in enumerate(zip(tensor.shape, wanted, strict=True)):
            if size != other:
                self._differs(f"{said}.shape[{dim}]", tensor, int(size), other)
        return True

    def _size(self, said: str, tensor: Any, dim: int, pair: Compared) -> bool:
        if not -tensor.dim() <= dim < tensor.dim():
            return False
        dim %= tensor.dim()
        wanted = self.shapes.setdefault(id(tensor), [int(size) for size in tensor.shape])
        if type(pair.expected) is int:
            wanted[dim] = pair.expected
        self._differs(f"{said}.shape[{dim}]", tensor, int(tensor.shape[dim]), wanted[dim])
        return True

    def _differs(self, said: str, tensor: Any, size: int, wanted: int) -> None:
        self.found[said] = size
        self.of.setdefault(id(tensor), set()).add((wanted, size))

    def _strides(self, tensor: Any, pair: Compared) -> bool:
        wanted, shape = _integers(pair.expected), self.shapes.get(id(tensor))
        if wanted is None or shape is None:
            return False
        return laid_out_alike(tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride())), shape, wanted)

    def _number(self, module: Any, pair: Compared) -> bool:
        actual, wanted = _integers(pair.actual), _integers(pair.expected)
        if pair.range is not None or actual is None or wanted is None or len(actual) != len(wanted):
            return False
        own = [id(one) for one in cast("dict[str, Any]", vars(module)["_parameters"]).values() if one is not None]
        for one, other in zip(actual, wanted, strict=True):
            if one != other:
                self.numbers.append(((other, one), own))
        return True

    def _named(self, frame: Frame, node: ast.Name, pair: Compared) -> bool:
        said = frame.said(node)
        if said not in self.read or type(pair.actual) is not int:
            return False
        self.found[said] = pair.actual
        return True

    def _computed(self, frame: Frame, node: ast.BinOp) -> bool:
        """A remainder or a product of sizes, which a kernel for a range of sizes asks for."""
        leaves = [frame.names.behind(one) for one in _operands(node)]
        sizes = [one for one in leaves if not isinstance(one, ast.Constant)]
        for one in sizes:
            match one:
                case ast.Subscript(ast.Attribute(owner, "shape"), ast.Constant(int())) | ast.Call(
                    ast.Attribute(owner, "size"), [ast.Constant(int())]
                ) if is_tensor(frame.tried(owner)):
                    pass
                case ast.Name() if frame.said(one) in self.read:
                    pass
                case _:
                    return False
        for one in sizes:
            self.found[frame.said(one)] = int(frame.value(one))
        return bool(sizes)


def laid_out_alike(shape: Sequence[int], strides: Sequence[int], other: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether two tensors' dimensions lie in memory in the same order and with the same gaps between them: the first
    with strides `strides`, another of shape `other` with strides `wanted`."""
    if len(strides) != len(wanted):
        return False
    step, step_wanted = Fraction(1), 1  # over all that lies within a dimension
    for dim in sorted(range(len(shape)), key=lambda dim: (wanted[dim], -dim)):
        expected = wanted[dim] * step / step_wanted
        if shape[dim] != 1 and strides[dim] != expected:  # the stride of a dimension of size 1 addresses nothing
            return False
        if wanted[dim]:
            step, step_wanted = expected * shape[dim], wanted[dim] * other[dim]
    return all(shape) and all(other)


def _integers(value: Any) -> list[int] | None:
    """An integer, or several; None for anything else, True and False among it."""
    if type(value) is int:
        return [value]
    if isinstance(value, tuple | list):
        several = cast("list[object]", [*value])
        return [int(cast(int, one)) for one in several] if all(type(one) is int for one in several) else None
    return None


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_operands(node.left), *_operands(node.right)]
    return [node]
