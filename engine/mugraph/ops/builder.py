"""The builder: values of recorded calls at given axes, as a graph of operators, with the algebra's canonical forms.

Lowering is driven by demand. An output is asked for at fresh axes, its rule asks for the operands at the axes it needs,
and so on down to the loads: `(x @ x.T)[i, j]` asks for `x[i, k]` and `x[j, k]`, so no operator can ever see one axis
twice, and a broadcast simply forgets an axis. Which of these axes are the same after all is `unify.py`'s question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, sqrt

from mugraph.ir.calls import Argument, Call, Ref, TensorInfo
from mugraph.ir.ops import LEAVES, Kind
from mugraph.ir.windows import Window
from mugraph.ops.arguments import Arguments
from mugraph.ops.axes import AtomDim, AtomDims, Atoms
from mugraph.ops.concat import Pieces
from mugraph.ops.masks import Masks
from mugraph.ops.registry import NotLowerable, entry_for
from mugraph.ops.sigmoids import share, shifted

FLOATS = ("f16", "bf16", "f32")
HIDDEN = "hidden"
"""`fn` of an AMAX of values some of which a mask hides."""
LOG = "log"
"""`fn` of a logarithm, which has a meaning under an exponential alone: exp(a - log b) is exp(a) / b."""
_MOST_NODES = 3000
"""Nested hand-written norms ask for their argument twice each; a region that grows beyond this is no search unit."""


@dataclass(eq=False, slots=True)
class Node:
    """An operator at given axes. LOAD: `source` is the value number, `dims` its axes. MASK: `dims` are its rows and its
    columns. hint: a name it would like; bound: it is the user's. call: position of the call whose rule made it, -1 for
    none.

    windows: a LOAD: dimensions it reads through a window, each with the atoms that are its taps (Window.taps is not
             counted before the end).
    keep: a MASK: where it is 0 the value is minus infinity. Such a value is no operator of the graph: it stands for
          inputs[0], and an exponential of it is the exponential of that, times the mask.
    cases, on: a concatenation (concat.py), no operator of the graph either: one of `cases` at each place along `on`.
    placed: it is in the builder's list.
    """

    kind: Kind
    inputs: tuple[Node, ...] = ()
    over: tuple[int, ...] = ()
    source: int = -1
    dims: AtomDims = ()
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    hint: str = ""
    bound: bool = False
    call: int = -1
    keep: Node | None = None
    windows: tuple[tuple[Window, AtomDim], ...] = ()
    cases: tuple[Node, ...] = ()
    on: AtomDim = ()
    placed: bool = False

    @property
    def runs(self) -> AtomDims:
        """`dims`, positions and taps of a window apart: no atom of one can be joined to one of the other."""
        taps = {window.dim: len(own) for window, own in self.windows}
        ends = [len(atoms) - taps.get(number, 0) for number, atoms in enumerate(self.dims)]
        return tuple(run for atoms, end in zip(self.dims, ends, strict=True) for run in (atoms[:end], atoms[end:]))


@dataclass(eq=False)
class Builder:
    """
    calls:  what may be lowered, in execution order; every other value is loaded
    values: what is known of each value number
    names:  what each value number is called, those in `bound` by the user's code
    nodes:  in an order in which inputs come before uses
    demands: value number -> the axes it was asked for -> the answer
    """

    calls: Sequence[Call]
    values: Mapping[int, TensorInfo]
    names: Mapping[int, str] = field(default_factory=dict[int, str])
    bound: Collection[int] = frozenset()
    atoms: Atoms = field(default_factory=Atoms)
    nodes: list[Node] = field(default_factory=list[Node])
    demands: dict[int, dict[AtomDims, Node]] = field(default_factory=dict[int, dict[AtomDims, Node]])
    _f32: bool = False
    _call: int = -1

    def __post_init__(self) -> None:
        # `x.float()` of a float32 tensor gives x itself: a call does not produce what it was given
        self.producers = {
            output: i for i, call in enumerate(self.calls) for output in call.outputs if output not in operands(call)
        }
        self.masks = Masks(self)
        self.pieces = Pieces(self)
        self._mixed = any(info.dtype in ("f16", "bf16") for info in self.values.values())

    # --- asking -------------------------------------------------------------------------------------------------

    def shape(self, operand: Argument) -> tuple[int, ...]:
        """Of a tensor argument; () of a number."""
        return self.values[operand.value].shape if isinstance(operand, Ref) else ()

    def fresh(self, size: int, hint: str = "", weight: int = 1) -> AtomDim:
        return self.atoms.fresh(size, hint, weight)

    def at(self, operand: Argument, dims: Sequence[AtomDim]) -> Node:
        """The operand at these axes, one entry for each of its dimensions. A number is a constant."""
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

    def broadcast(self, operand: Argument, dims: Sequence[AtomDim]) -> Node:
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
        """An input read through windows. What is computed here it would compute again for every tap, and beyond its
        ends it would not be zero: such an operand has to be loaded."""
        if operand.value in self.producers:
            raise NotLowerable("a window of a value that is computed here is outside the fragment")
        found = self.atoms.resolve_dims(dims)
        if any(atom in self.atoms.sections for dim in found for atom in dim):
            raise NotLowerable("a part of what is read through windows is outside the fragment")
        return self._load(operand.value, found, tuple(windows))

    def _load(self, value: int, dims: AtomDims, windows: tuple[tuple[Window, AtomDim], ...] = ()) -> Node:
        info = self.values[value]
        if info.dtype not in FLOATS:
            raise NotLowerable(f"an input of type {info.dtype} is outside the fragment")
        return self._add(Node(Kind.LOAD, source=value, dims=dims, windows=windows))

    def _apply(self, i: int, value: int, dims: AtomDims) -> Node:
        call = self.calls[i]
        entry = entry_for(call.target)
        if entry is None:
            raise NotLowerable(f"{call.target} has no rule")
        one = len(call.outputs) == 1 or (entry.first_only and value == call.outputs[0])
        if not one and not entry.several:
            raise NotLowerable(f"{call.target} has {len(call.outputs)} results; its rule gives one")
        info = self.values[value]
        if info.dtype not in FLOATS:
            raise NotLowerable(f"{call.target} gives {info.dtype}, which is outside the fragment")
        first = call.args[0] if call.args else None
        writes = is_inplace(call)
        if writes and not (isinstance(first, Ref) and first.value in self.producers):
            raise NotLowerable(f"{call.target} writes to a value made outside the piece")
        outer = self._f32, self._call
        self._f32, self._call = self._mixed and info.dtype == "f32", i
        node = entry.rule(self, Arguments(call, entry.parameters, value), dims)
        self._f32, self._call = outer
        self._name(node, value)
        return node

    def _name(self, node: Node, value: int) -> None:
        """What the user's code calls the value first, before what the value is."""
        if node.kind in (Kind.LOAD, Kind.CONST) or node.bound or node.keep is not None:
            return
        node.bound = value in self.bound
        if node.bound or not node.hint:
            node.hint = self.names.get(value, "")

    # --- primitives, each giving its canonical form ------------------------------------------------------------------

    def _add(self, node: Node) -> Node:
        if any(i.cases for i in node.inputs):
            return self.pieces.apply(node)
        if any(i.keep is not None for i in node.inputs):
            raise NotLowerable("minus infinity is added to what no exponential is taken of at once")
        if len(self.nodes) >= _MOST_NODES:
            raise NotLowerable("the program is too large for one search unit")
        node.call, node.placed = self._call, True
        node.f32 = self._f32 and node.kind not in LEAVES
        self.nodes.append(node)
        return node

    def again(self, node: Node, inputs: tuple[Node, ...], over: AtomDim, dims: AtomDims = ()) -> Node:
        """What the node does, to other operands, as part of the same call. dims: of a LOAD."""
        outer = self._f32, self._call
        if node.placed:  # else it is about to be added, as part of the call at hand
            self._f32, self._call = node.f32, node.call
        made = self._made(node, inputs, over, dims)
        self._f32, self._call = outer
        if not made.hint:
            made.hint = node.hint
        return made

    def _made(self, node: Node, inputs: tuple[Node, ...], over: AtomDim, dims: AtomDims) -> Node:
        match node.kind:
            case Kind.LOAD:
                if node.windows:
                    raise NotLowerable("a concatenation of windows is outside the fragment")
                return self._add(Node(Kind.LOAD, source=node.source, dims=dims))
            case Kind.ADD:
                return self.add(*inputs)
            case Kind.MUL:
                return self.mul(*inputs)
            case Kind.DIV:
                return self.div(*inputs)
            case Kind.SQRT:
                return self.sqrt(*inputs)
            case Kind.EXP:
                return self.exp(*inputs)
            case Kind.MAX:
                return self.maximum(*inputs)
            case Kind.SUM:
                return self.sum(inputs[0], over)
            case Kind.AMAX if node.fn != HIDDEN:
                return self.amax(inputs[0], over)
            case Kind.DOT:
                return self.dot(inputs[0], inputs[1], over)
            case Kind.UNARY:
                return self.unary(node.fn, *inputs)
            case _:
                raise NotLowerable(f"a concatenation does not reach through {node.kind}")

    def const(self, value: float) -> Node:
        if value != value or value in (float("inf"), float("-inf")):
            raise NotLowerable("an infinite constant is outside the fragment")
        return self._add(Node(Kind.CONST, value=value))

    def mask(self, rows: AtomDim, columns: AtomDim, diagonal: int) -> Node:
        """1 where the place along `columns` is at most that along `rows` + diagonal, else 0."""
        rows, columns = self.atoms.resolve_dims((rows, columns))
        if any(atom in self.atoms.sections for atom in (*rows, *columns)):
            raise NotLowerable("a part of a mask is outside the fragment")
        if self.atoms.elements(columns) - 1 <= diagonal:
            return self.const(1.0)
        if self.atoms.elements(rows) - 1 + diagonal < 0:
            return self.const(0.0)
        return self._add(Node(Kind.MASK, dims=(rows, columns), value=float(diagonal)))

    def hide(self, a: Node, keep: Node) -> Node:
        """`a`, but minus infinity where the mask `keep` is 0."""
        if keep.kind is Kind.CONST:
            if keep.value == 0.0:
                raise NotLowerable("a mask hides all of a value")
            return a
        if a.cases:
            raise NotLowerable("a concatenation is masked")
        if a.keep is not None:
            raise NotLowerable("two masks on one value are outside the fragment")
        return Node(Kind.ADD, (a,), keep=keep)

    def add(self, a: Node, b: Node) -> Node:
        for one, other in ((a, b), (b, a)):
            if one.keep is not None:
                return self.hide(self.add(one.inputs[0], other), one.keep)
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(a.value + b.value)
        if a.kind is Kind.CONST:
            a, b = b, a
        if b.kind is Kind.CONST and b.value == 0.0:
            return a
        function = shifted(self, a, b.value) if b.kind is Kind.CONST else None
        return function or self._add(Node(Kind.ADD, (a, b)))

    def mul(self, a: Node, b: Node) -> Node:
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(a.value * b.value)
        if b.kind is Kind.CONST:
            a, b = b, a
        if a.kind is Kind.CONST:
            return self._scale(a.value, b)
        for one, other in ((a, b), (b, a)):
            if other.kind is Kind.DIV and other.inputs[0].kind is Kind.CONST:
                return self.div(self.mul(other.inputs[0], one), other.inputs[1])
            if other.kind is Kind.UNARY and other.fn == "sigmoid" and other.inputs[0] is one:
                return self.unary("silu", one)
        if all(i.kind is Kind.MUL and i.inputs[0].kind is Kind.CONST and not i.cases for i in (a, b)):
            return self._scale(a.inputs[0].value * b.inputs[0].value, self.mul(a.inputs[1], b.inputs[1]))
        return self._add(Node(Kind.MUL, (a, b)))

    def _scale(self, factor: float, x: Node) -> Node:
        if x.keep is not None and factor > 0.0:
            return self.hide(self._scale(factor, x.inputs[0]), x.keep)
        if factor == 1.0:
            return x
        if x.kind is Kind.MUL and x.inputs[0].kind is Kind.CONST:
            return self._scale(factor * x.inputs[0].value, x.inputs[1])
        if x.kind is Kind.DIV and x.inputs[0].kind is Kind.CONST:
            return self.div(self.const(factor * x.inputs[0].value), x.inputs[1])
        return self._add(Node(Kind.MUL, (self.const(factor), x)))

    def sub(self, a: Node, b: Node) -> Node:
        return self.add(a, self.mul(self.const(-1.0), b))

    def div(self, a: Node, b: Node) -> Node:
        if b.kind is Kind.CONST:
            if b.value == 0.0:
                raise NotLowerable("a division by the constant zero")
            return self.mul(self.const(1.0 / b.value), a)
        if b.kind is Kind.DIV and b.inputs[0].kind is Kind.CONST:
            return self.div(self.mul(a, b.inputs[1]), b.inputs[0])
        return share(self, a, b) or self._add(Node(Kind.DIV, (a, b)))

    def sqrt(self, a: Node) -> Node:
        if a.kind is Kind.CONST and a.value >= 0.0:
            return self.const(sqrt(a.value))
        return self._add(Node(Kind.SQRT, (a,)))

    def exp(self, a: Node) -> Node:
        if a.keep is not None:
            return self.mul(self.exp(a.inputs[0]), a.keep)
        if a.kind is Kind.CONST and a.value < 700.0:
            return self.const(exp(a.value))
        if a.kind is Kind.ADD and not a.cases:
            for one, other in (a.inputs, a.inputs[::-1]):
                log = other.inputs[-1] if other.kind is Kind.MUL else other
                if log.fn == LOG and _is_scaled(other, -1.0, log):
                    return self.div(self.exp(one), log.inputs[0])
        return self._add(Node(Kind.EXP, (a,)))

    def maximum(self, a: Node, b: Node) -> Node:
        """The larger of two. Of a value and 0 it is relu, of a value and its negative abs."""
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(max(a.value, b.value))
        if a.kind is Kind.CONST:
            a, b = b, a
        if b.kind is Kind.CONST and b.value == 0.0:
            return self.unary("relu", a)
        for one, other in ((a, b), (b, a)):
            if _is_scaled(other, -1.0, one):
                return self.unary("abs", one)
        return self._add(Node(Kind.MAX, (a, b)))

    def minimum(self, a: Node, b: Node) -> Node:
        """The smaller of two."""
        minus = self.const(-1.0)
        return self.mul(minus, self.maximum(self.mul(minus, a), self.mul(minus, b)))

    def amax(self, a: Node, over: Sequence[int]) -> Node:
        """The largest along the atoms. Of a value that is minus infinity where a mask is 0 it has no meaning of its own
        here, and may only be subtracted before an exponential (shifts.py)."""
        if a.keep is not None:
            return self._add(Node(Kind.AMAX, (a.inputs[0],), over=tuple(over), fn=HIDDEN))
        return self._add(Node(Kind.AMAX, (a,), over=tuple(over))) if over else a

    def log(self, a: Node) -> Node:
        """The logarithm of what is positive; finish refuses one that is left."""
        return self.unary(LOG, a)

    def unary(self, fn: str, a: Node) -> Node:
        return self._add(Node(Kind.UNARY, (a,), fn=fn))

    def sum(self, a: Node, over: Sequence[int]) -> Node:
        """Sum of `a` over the atoms; an axis `a` does not have counts as so many equal terms."""
        self.masks.refuse_empty(a, tuple(over))
        return self._add(Node(Kind.SUM, (a,), over=tuple(over))) if over else a

    def dot(self, a: Node, b: Node, over: Sequence[int]) -> Node:
        """Sum over the atoms of the product."""
        return self._add(Node(Kind.DOT, (a, b), over=tuple(over))) if over else self.mul(a, b)


def _is_scaled(node: Node, factor: float, of: Node) -> bool:
    """Is the node `of` times the factor?"""
    if node.kind is not Kind.MUL or node.inputs[0].kind is not Kind.CONST:
        return False
    if node.inputs[1] is of:
        return node.inputs[0].value == factor
    scaled = of.kind is Kind.MUL and of.inputs[0].kind is Kind.CONST and of.inputs[1] is node.inputs[1]
    return scaled and node.inputs[0].value == factor * of.inputs[0].value


def operands(call: Call) -> tuple[int, ...]:
    """Value numbers the call reads, in order, each once."""

    def walk(argument: Argument) -> list[int]:
        if isinstance(argument, Ref):
            return [argument.value]
        if isinstance(argument, tuple):
            return [value for item in argument for value in walk(item)]
        if isinstance(argument, slice):
            bounds: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
            return [value for item in bounds for value in walk(item)]
        return []

    found = [value for argument in (*call.args, *call.kwargs.values()) for value in walk(argument)]
    return tuple(dict.fromkeys(found))


def is_inplace(call: Call) -> bool:
    """Does the call write to its first argument?"""
    name = call.target.rsplit(".", 1)[-1]
    if name.startswith("__") and name.endswith("__"):
        return name.startswith("__i") and name != "__invert__"
    return name.endswith("_") or call.kwargs.get("inplace") is True
