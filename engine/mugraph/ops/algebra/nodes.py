"""What the builder makes: operators at given axes, before they are a tensor program."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.ir.windows import Window
from mugraph.ops.algebra.axes import AtomDim, AtomDims

HIDDEN = "hidden"
"""`fn` of an AMAX of values some of which a mask hides."""


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


def is_scaled(node: Node, factor: float, of: Node) -> bool:
    """Is the node `of` times the factor?"""
    if node.kind is not Kind.MUL or node.inputs[0].kind is not Kind.CONST:
        return False
    if node.inputs[1] is of:
        return node.inputs[0].value == factor
    scaled = of.kind is Kind.MUL and of.inputs[0].kind is Kind.CONST and of.inputs[1] is node.inputs[1]
    return scaled and node.inputs[0].value == factor * of.inputs[0].value
