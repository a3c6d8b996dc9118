"""The builder: values of recorded calls at given axes, as a graph of operators.

Lowering is driven by demand. An output is asked for at fresh axes, its rule asks for the operands at the axes it needs,
and so on down to the loads: `(x @ x.T)[i, j]` asks for `x[i, k]` and `x[j, k]`, so no operator can ever see one axis
twice, and a broadcast simply forgets an axis. Which of these axes are the same after all is `unify.py`'s question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mugraph.ir.calls import Argument, Call, Ref, TensorInfo, is_inplace, operands
from mugraph.ir.dtypes import COMPARED, COMPUTED, ELEMENTS, NARROW, READ, itemsize
from mugraph.ir.ops import Kind, Tf32
from mugraph.ir.ranges import Point, Product
from mugraph.ir.sized_arguments import SizedNumber
from mugraph.ir.windows import Window
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.bounds import Bounds
from mugraph.ops.algebra.complexes import COMPLEX, PARTS, refuse_unknown
from mugraph.ops.algebra.concat import Pieces
from mugraph.ops.algebra.conversions import CONVERTED
from mugraph.ops.algebra.masks import Masks
from mugraph.ops.algebra.nodes import Node, in_pieces
from mugraph.ops.algebra.packed import cut, is_shifted
from mugraph.ops.algebra.places import Places
from mugraph.ops.algebra.powers import number_of_sizes
from mugraph.ops.algebra.primitives import Primitives
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.shifted import shifted
from mugraph.ops.algebra.spans import SMALL, span
from mugraph.ops.algebra.spellings import canonical


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a PyTorch call (registry.py).

    rule: its meaning. parameters: names of the call's parameters in order; a last one with a star takes the rest.
    shape_only: the result holds the operand's numbers, moved or repeated, so that it costs nothing by itself.
    first_only: the call may have several results; the rule gives the first.
    several: calls of it have several results; `Arguments.output` says which one is asked for.
    truth: a result of type bool is the 1 or 0 that the rule gives.
    joins: the result holds its operands' numbers, side by side.
    tf32: PyTorch's setting by which its products of float32 numbers may take TF32.
    in_part: a call that the rule refuses for its arguments is another function, and not of the algebra.
    in_float32: PyTorch has it in no wider type.
    in_float8: PyTorch multiplies numbers of a type that generated kernels do not multiply.
    numbers: parameters for a number that may be known only where the call is made."""

    rule: Rule
    parameters: tuple[str, ...]
    shape_only: bool = False
    first_only: bool = False
    several: bool = False
    truth: bool = False
    joins: bool = False
    tf32: Tf32 = ""
    in_part: bool = False
    in_float32: bool = False
    in_float8: bool = False
    numbers: tuple[str, ...] = ()


class Builder(Primitives):
    """
    calls:  what may be lowered, in execution order; every other value is loaded
    values: what is known of each value number
    names:  what each value number is called, those in `bound` by the user's code
    entry_for: what is known of a call, by its target (registry.py)
    demands: value number -> the axes it was asked for -> the answer; below 0 of values that are one (rolled.py)
    varying: of values whose sizes vary, what each dimension is a product of; values of which none does are left out
    general: the calls with what depends on the sizes, by their outputs. point: the sizes here
    counted: sizes that are computed with, and the axes along which they are counted
    indices: what lookups call their indices for now -> value numbers
    """

    def __init__(
        self,
        calls: Sequence[Call],
        values: Mapping[int, TensorInfo],
        names: Mapping[int, str],
        bound: Collection[int],
        entry_for: Callable[[str], Entry | None],
    ) -> None:
        super().__init__()
        self._entry_for = entry_for
        self.calls, self.values, self.names, self.bound = calls, values, names, bound
        self.demands: dict[int, dict[AtomDims, Node]] = {}
        # `x.float()` of a float32 tensor gives x itself: a call does not produce what it was given
        self.producers = {
            output: i for i, call in enumerate(calls) for output in call.outputs if output not in operands(call)
        }
        self.masks, self.places, self.pieces = Masks(self), Places(self), Pieces(self)
        self.varying: Mapping[int, tuple[Product, ...]] = {}
        self.general: Mapping[tuple[int, ...], Call] = {}
        self.point: Point = {}
        self.counted: dict[str, AtomDim] = {}
        self.indices: dict[str, int] = {}
        self._parts: AtomDim | None = None
        self._mixed = any(info.dtype in NARROW for info in values.values())
        self.bounds = Bounds(values, mixed=self._mixed)

    def shape(self, operand: Argument | SizedNumber) -> tuple[int, ...]:
        """Of a tensor argument; () of a number."""
        return self.values[operand.value].shape if isinstance(operand, Ref) else ()

    def fresh(self, size: int, hint: str = "", weight: int = 1) -> AtomDim:
        return self.atoms.fresh(size, hint, weight)

    def at(self, operand: Argument | SizedNumber, dims: Sequence[AtomDim]) -> Node:
        """The operand at these axes, one entry for each of its dimensions. A number is a constant."""
        if isinstance(operand, SizedNumber):
            return number_of_sizes(self, operand)
        if isinstance(operand, (int, float)):
            return self.const(float(operand))
        if not isinstance(operand, Ref):
            raise NotLowerable(f"{operand!r} is no tensor")
        found = self.atoms.resolve_dims(dims)
        info = self.values[operand.value]
        if tuple(self.atoms.elements(dim) for dim in found) != info.shape:
            raise NotLowerable(f"a value of shape {info.shape} was asked for at other sizes")
        known = self.demands.setdefault(operand.value, {})
        if found not in known:
            known[found] = self._value(operand.value, found)
        return known[found]

    def _value(self, value: int, dims: AtomDims) -> Node:
        triangle = self.values[value].triangle
        if triangle is not None:
            return self.masks.value(triangle, self.values[value].dtype, dims)
        i = self.producers.get(value)
        return self._load(value, dims) if i is None else self._apply(i, value, dims)

    def broadcast(self, operand: Argument | SizedNumber, dims: Sequence[AtomDim]) -> Node:
        """The operand at the axes of a result it is broadcast to (PyTorch's rule: aligned at the right)."""
        shape = self.shape(operand)
        return self.at(operand, self.trim(shape, dims))

    def trim(self, shape: Sequence[int], dims: Sequence[AtomDim]) -> AtomDims:
        """`dims` of a result, as an operand of this shape has them: without the axes it is broadcast along."""
        if len(shape) > len(dims):
            raise NotLowerable("an operand has more dimensions than its result")
        kept = tuple(dims)[len(dims) - len(shape) :]
        return tuple(() if size == 1 else dim for size, dim in zip(shape, kept, strict=True))

    def windowed(self, operand: Ref, dims: Sequence[AtomDim], windows: Sequence[tuple[Window, AtomDim]]) -> Node:
        """An input read through windows. It has to be loaded: a computed one would be computed again for every tap, and
        would not be zero beyond its ends."""
        if operand.value in self.producers:
            raise NotLowerable("a window of a value that is computed here is outside the fragment")
        found = self.atoms.resolve_dims(dims)
        if any(atom in self.atoms.sections for dim in found for atom in dim):
            raise NotLowerable("a part of what is read through windows is outside the fragment")
        return self._load(operand.value, found, tuple(windows))

    def _load(self, value: int, dims: AtomDims, windows: tuple[tuple[Window, AtomDim], ...] = ()) -> Node:
        info = self.values[value]
        if info.dtype == COMPLEX:
            views = (self._add(Node(Kind.LOAD, source=value, dims=(*dims, self._part(n)))) for n in range(len(PARTS)))
            return self.pair(*views)
        if info.dtype not in READ:
            raise NotLowerable(f"an input of type {info.dtype} is outside the fragment")
        if not windows:
            dims, windows = shifted(self.atoms, dims, self.inside(value))
        raw = info.dtype if info.dtype in COMPARED else ""
        return self._add(Node(Kind.LOAD, source=value, dims=dims, windows=windows, raw=raw))

    def looked_up(self, table: Node, dims: AtomDims, window: Window) -> Node:
        """A load, with a dimension of which those rows are read that an index says."""
        return self._add(replace(table, dims=dims, windows=((window, ()),), hint="", placed=False))

    def index_name(self, value: int) -> str:
        name = f"index {value}"
        self.indices[name] = value
        return name

    def inside(self, value: int) -> list[int]:
        """Dimensions whose sizes vary and around which others lie, whose strides a part of such a dimension would leave
        gaps in. Without others around it a part is a view like any other."""
        strides = [
            n if size > 1 else 0 for n, size in zip(self.values[value].strides, self.values[value].shape, strict=True)
        ]
        return [at for at, of in enumerate(self.varying.get(value, ())) if of and strides[at] < max(strides)]

    def _part(self, n: int) -> AtomDim:
        """Of a complex value in memory: its last dimension, at one of its parts."""
        return self.atoms.section(len(PARTS), n, 1, ())

    def pair(self, real: Node, imaginary: Node) -> Node:
        """A complex value."""
        if self._parts is None:
            self._parts = self.fresh(len(PARTS), "p")
        return in_pieces((real, imaginary), self._parts)

    def _apply(self, i: int, value: int, dims: AtomDims) -> Node:
        call = self.calls[i]
        entry = self._entry_for(call.target)
        if entry is None:
            raise NotLowerable(f"{call.target} has no rule")
        refuse_unknown(canonical(call.target), call, self.values)
        one = len(call.outputs) == 1 or (entry.first_only and value == call.outputs[0])
        if not one and not entry.several:
            raise NotLowerable(f"{call.target} has {len(call.outputs)} results; its rule gives one")
        info = self.values[value]
        is_truth = entry.truth and info.dtype == "bool"
        is_whole = info.dtype in COMPARED
        is_pair = info.dtype == COMPLEX
        moves = self._moves(call, entry, info.dtype)
        is_small = info.dtype in SMALL and not moves
        is_converted = info.dtype in CONVERTED and entry.shape_only
        if not (info.dtype in COMPUTED or is_pair or is_truth or is_whole or is_small or is_converted or moves):
            raise NotLowerable(f"{call.target} gives {info.dtype}, which is outside the fragment")
        first = call.args[0] if call.args else None
        writes = is_inplace(call)
        if writes and not (isinstance(first, Ref) and first.value in self.producers):
            raise NotLowerable(f"{call.target} writes to a value made outside the piece")
        outer = self._f32, self._tf32, self._call
        self._f32, self._tf32, self._call = self._mixed and info.dtype == "f32", entry.tf32 if call.tf32 else "", i
        general = self.general.get(call.outputs)
        of_sizes = None if general is None else partial(Arguments, general, entry.parameters, value)
        node = entry.rule(self, Arguments(call, entry.parameters, value, of_sizes), dims)
        self._f32, self._tf32, self._call = outer
        if (is_small or is_whole) and is_shifted(node):  # an operator of its own is what takes a field of it
            return cut(node, 8 * itemsize(info.dtype))
        found = span(node, self.values, self.bounds) if is_small or is_whole else None
        known = node.reach is not None or node.raw in ("i32", info.dtype) or found is not None
        if is_whole and not known:  # it rounds, or may wrap around
            raise NotLowerable(f"{call.target} gives {info.dtype}, which is outside the fragment")
        least, largest = SMALL.get(info.dtype, (0, 0))
        if is_small and (found is None or found[0] < least or found[1] > largest):
            raise NotLowerable(f"{call.target} gives {info.dtype}, of which some may wrap around")
        self._name(node, value)
        is_rounded = info.dtype in NARROW and (node.reach or 0) * ELEMENTS[info.dtype].epsilon > 1
        if is_rounded and node.kind is not Kind.CONST:
            node = self._add(replace(node, placed=False))
            node.reach = None  # the type does not have all of these numbers
        return node

    def _moves(self, call: Call, entry: Entry, dtype: str) -> bool:
        """Are the result's numbers, of a type that is only read, the operands' own? A cast to it would round."""
        moves = entry.shape_only or entry.joins
        return moves and dtype in READ and all(self.values[x].dtype == dtype for x in operands(call))

    def _name(self, node: Node, value: int) -> None:
        """What the user's code calls the value first, before what the value is."""
        if node.kind in (Kind.LOAD, Kind.CONST) or node.bound or node.keep is not None:
            return
        node.bound = value in self.bound
        if node.bound or not node.hint:
            node.hint = self.names.get(value, "")


Rule = Callable[[Builder, Arguments, AtomDims], Node]
"""What a call's result is at these axes."""
