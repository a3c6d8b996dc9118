"""What the builder makes: operators at given axes, before they are a tensor program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mugraph.ir.ops import Kind, Tf32
from mugraph.ir.windows import Window
from mugraph.ops.algebra.axes import AtomDim, AtomDims

HIDDEN = "hidden"
"""`fn` of an AMAX of values some of which a mask hides."""


@dataclass(eq=False, slots=True)
class Node:
    """An operator at given axes. LOAD: `source` is the value number, `dims` its axes. MASK: `dims` are its rows and its
    columns. A running sum: `dims` are what it runs along, outermost first. hint: a name it would like; bound: it is the
    user's. call: position of the call whose rule made it, -1 for none.

    windows: a LOAD: dimensions it reads through a window, each with the atoms that are its taps (Window.taps is not
             counted before the end).
    keep: a MASK, another condition, or a product of such: where it is 0 the value is minus infinity. Such a value is no
          operator of the graph: it stands for inputs[0], and an exponential of it is the exponential of that, times
          `keep` (hiding.py).
    low: with `keep`: the value where it is 0, if that is a number so low that it stands for minus infinity
         (masks.is_low), and what was added to it.
    cases, on: a concatenation (concat.py), no operator of the graph either: one of `cases` at each place along `on`.
    placed: it is in the builder's list.
    fn: of a LOAD: what of the tensor is read, if not its elements (packed.py).
    raw: a LOAD: the type of whole numbers that are compared and nothing else.
    shifted: a quotient or a difference that is whole: this node, shifted right by so many places (bits.py).
    reach: the largest size of a number that is known to be whole and no input; None of any other.
    """

    kind: Kind
    inputs: tuple[Node, ...] = ()
    over: tuple[int, ...] = ()
    source: int = -1
    dims: AtomDims = ()
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    tf32: Tf32 = ""
    hint: str = ""
    bound: bool = False
    call: int = -1
    keep: Node | None = None
    low: Node | None = None
    windows: tuple[tuple[Window, AtomDim], ...] = ()
    cases: tuple[Node, ...] = ()
    on: AtomDim = ()
    placed: bool = False
    raw: str = ""
    reach: int | None = None
    shifted: tuple[Node, int] | None = None

    @property
    def runs(self) -> AtomDims:
        """`dims`, positions and taps of a window apart: no atom of one can be joined to one of the other."""
        taps = {window.dim: len(own) for window, own in self.windows}
        ends = [len(atoms) - taps.get(number, 0) for number, atoms in enumerate(self.dims)]
        return tuple(run for atoms, end in zip(self.dims, ends, strict=True) for run in (atoms[:end], atoms[end:]))


def hidden(a: Node, keep: Node, low: Node | None = None) -> Node:
    """See Node.keep and Node.low."""
    return Node(Kind.ADD, (a,), keep=keep, low=low)


def in_pieces(cases: Sequence[Node], on: AtomDim) -> Node:
    """See Node.cases."""
    return replace(cases[0], kind=Kind.ADD, inputs=(), over=(), dims=(), cases=tuple(cases), on=on, shifted=None)


def terms(node: Node) -> Sequence[tuple[Node, Node]]:
    """The two that the node adds, in both orders; nothing where it is no sum of two."""
    is_sum = bool(node.kind.shifted_by) and node.keep is None and not node.cases
    return _both_orders(node) if is_sum else ()


def factors(node: Node) -> Sequence[tuple[Node, Node]]:
    """The two that the node multiplies, in both orders; nothing where it is no product of two."""
    return _both_orders(node) if node.kind.absorbing == 0.0 else ()


def _both_orders(node: Node) -> Sequence[tuple[Node, Node]]:
    one, other = node.inputs
    return (one, other), (other, one)


def constant_factor(node: Node) -> tuple[float, Node] | None:
    """The node as a constant times another one. (The constant stands first.)"""
    if 0 not in node.kind.scaled_by or node.inputs[0].kind is not Kind.CONST:
        return None
    return node.inputs[0].value, node.inputs[1]


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The masks that the node is the product of; nothing where it is no such product."""
    if node.kind is Kind.MASK:
        return (node,)
    parts = [conjuncts(factor) for factor in (node.inputs if factors(node) else ())]
    return tuple(dict.fromkeys(mask for part in parts for mask in part)) if parts and all(parts) else ()


def factored(node: Node) -> tuple[float, Node]:
    """As constant_factor; 1 times itself for any other node."""
    return constant_factor(node) or (1.0, node)


def is_scaled(node: Node, factor: float, of: Node) -> bool:
    """Is the node `of` times the factor?"""
    found = constant_factor(node)
    if found is None:
        return False
    if found[1] is of:
        return found[0] == factor
    inner = constant_factor(of)
    return inner is not None and inner[1] is found[1] and found[0] == factor * inner[0]
