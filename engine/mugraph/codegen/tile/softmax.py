"""Safe softmax: every exponential is taken relative to the maximum of its row.

Softmax does not change when its logits are shifted, so the graph may: `exp(s)` becomes `exp(s - max)` when every stored
value is homogeneous of degree 0 in it. A value's degree in one exponential counts the factors of it: products add,
quotients subtract, sums keep. Where the reduced axis is looped the maximum runs with the loop (ROWMAX with a loop), and
accumulators of degree d are rescaled by exp(old - new) ** d.

A kernel that another one finishes may store values of other degrees: relative to maxima of its own part of the row,
which it stores as well (handover.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from mugraph.codegen.tile.axes import Plan, Role
from mugraph.codegen.tile.kinds import EXP2, KEEP, ROWMAX
from mugraph.codegen.tile.masks import mask_of
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.ir.kept import conjuncts
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import underscored, unused
from mugraph.ir.ops import Kind
from mugraph.kinds.numbers import Numbers
from mugraph.ops.functions.degrees import Degrees as Arithmetic
from mugraph.ops.functions.degrees import NoDegree

LOG2E = 1.4426950408889634

Degrees = Mapping[str, float]
"""ROWMAX name -> degree."""


@dataclass(frozen=True)
class SafeSoftmax:
    """nodes: the graph without EXP. degrees: of every node in each shifted exponential (absent: 0).
    scales: ROWMAX -> the constant node whose value is folded into its base-2 factor ("" when there was none)."""

    nodes: dict[str, Node]
    degrees: Mapping[str, Degrees] = field(default_factory=dict[str, Degrees])
    scales: Mapping[str, str] = field(default_factory=dict[str, str])


def safe_softmax(
    nodes: Nodes,
    plan: Plan,
    vary: Mapping[str, frozenset[str]],
    *,
    unfinished: bool = False,
    may_overflow: bool = False,
) -> SafeSoftmax:
    """Replace every EXP by ROWMAX and EXP2, or raise Rejected where no shift leaves the outputs unchanged.

    unfinished:   outputs may be relative to the shift
    may_overflow: the program itself takes exponentials that no shift leaves unchanged: such a one stays as it is, and
                  overflows where it does in PyTorch
    """
    exps = [node for node in nodes.values() if node.kind.is_exponential]
    degrees: dict[str, dict[str, float]] = {name: {} for name in nodes}
    out: dict[str, Node] = {}
    shifts: dict[str, Node] = {}
    scales: dict[str, str] = {}
    hidden: dict[str, Node] = {}  # exponential -> the logits of the kept ones
    alias: dict[str, str] = {}
    for exp in exps:
        try:
            degree = _degrees(exp, nodes, unfinished)
            reduced = _reduced(exp, nodes, degree, vary)
            shift, scale = _shift(exp, nodes, plan, reduced, vary)
        except Rejected:
            if not may_overflow or exp.value:
                raise
            continue
        mask = mask_of(exp, nodes)
        if mask is not None:
            # The maximum is of the logits that count, and exp2(-inf) is 0: the product is in the exponential already.
            logits = shift.inputs[0]
            name = unused(underscored(f"{logits}_masked"), nodes)
            hidden[exp.name] = Node(name, KEEP, (logits, mask.name), exp.axes, value=-inf)
            shift = replace(shift, inputs=(name,))
            alias |= {node.name: exp.name for node in nodes.values() if exp.name in node.inputs}
        _keeps_rows(exp, nodes, degree, reduced)
        _runs_along_rows(exp, nodes, plan, degree, reduced)
        shifts[exp.name], scales[shift.name] = shift, scale
        for name, d in degree.items():
            if d:
                degrees[name][shift.name] = d
    for node in nodes.values():
        if node.name in alias:
            continue
        node = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
        if node.name in shifts:
            shift = shifts[node.name]
            if node.name in hidden:
                mask = nodes[hidden[node.name].inputs[1]]
                for one in (*conjuncts(mask, nodes), mask):
                    out.setdefault(one.name, one)
                out[hidden[node.name].name] = hidden[node.name]
            out[shift.name] = shift
            out[node.name] = replace(node, kind=EXP2, inputs=(shift.inputs[0], shift.name), value=shift.value)
        elif any(degrees.get(name) for name in node.inputs) and _undoes(node):
            out.update(_with_shift(node, degrees[node.inputs[0]], {*nodes, *out}))
        else:
            out[node.name] = node
    return SafeSoftmax(out, degrees, scales)


def _undoes(node: Node) -> bool:
    return isinstance(node.kind, Kind) and node.kind.opaque is not None and node.kind.opaque.undoes_exp


def _with_shift(log: Node, degrees: Degrees, taken: set[str]) -> dict[str, Node]:
    """The logarithm of a value that is relative to maxima, plus those: they are in units of log2."""
    name = unused(underscored(f"{log.name}_relative"), taken)
    made = {name: replace(log, name=name)}
    for number, (shift, degree) in enumerate(degrees.items(), 1):
        factor, part = (unused(underscored(f"{log.name}_{what}"), {*taken, *made}) for what in ("ln2", "shift"))
        made[factor] = Node(factor, Kind.CONST, value=degree / LOG2E)
        made[part] = Node(part, Kind.MUL, (factor, shift), log.axes)
        total = log.name if number == len(degrees) else unused(underscored(f"{log.name}_sum"), {*taken, *made})
        made[total] = Node(total, Kind.ADD, (name, part), log.axes)
        name = total
    return made


class Degree(Arithmetic):
    """The degree of a value in one exponential, with what is in kernels alone."""

    def sub(self, a: float, b: float) -> float:
        return self.add(a, b)

    def rsqrt(self, a: float) -> float:
        return -a / 2

    def keep(self, a: float) -> float:
        return a

    def minimum(self, a: float, b: float) -> float:
        return self.none(a, b)


def _degrees(exp: Node, nodes: Nodes, unfinished: bool) -> dict[str, float]:
    degree: dict[str, float] = {}
    numbers = Degree()
    for node in nodes.values():
        below = [degree[name] for name in node.inputs]
        try:
            if node.name == exp.name:
                found = 1.0
            elif node.kind is Kind.STORE:
                found = below[0] if unfinished else numbers.none(*below)
            elif node.kind.is_leaf:
                found = 0.0
            else:
                found = node.kind.meaning(numbers, below, node.fn, node.over)
        except NoDegree:
            what = "is stored" if node.kind is Kind.STORE else f"enters {node.kind.name} {node.name}"
            raise Rejected(
                f"{exp.name} is no softmax: a value that depends on the scale of its exponentials {what}."
            ) from None
        if node.kind is Kind.ACCUM and found < 0:
            raise Rejected(f"{node.name} accumulates a reciprocal of {exp.name}, which may overflow.")
        degree[node.name] = found
    return degree


def _reduced(
    exp: Node, nodes: Nodes, degree: Mapping[str, float], vary: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Axes along which values proportional to the exponential are summed: the row of the softmax."""
    axes: set[str] = set()
    for node in nodes.values():
        if node.kind is Kind.ACCUM:
            axes |= {node.loop} & vary[exp.name] if degree[node.name] else set()
        elif any(degree[name] for name in node.inputs):
            # A product, too, may lack an axis of its operands: one that the loop around it sums (build.py).
            axes |= frozenset[str]().union(*(nodes[name].axes for name in node.inputs)) - node.axes
    return frozenset(axes) & (exp.axes | vary[exp.name])


def _shift(
    exp: Node, nodes: Nodes, plan: Plan, reduced: frozenset[str], vary: Mapping[str, frozenset[str]]
) -> tuple[Node, str]:
    """The row maximum, in units of log2, and the constant node whose factor it takes in."""
    if not reduced:
        raise Rejected(f"{exp.name} is no softmax: nothing sums its exponentials.")
    loops = sorted(axis for axis in reduced & vary[exp.name] if plan[axis].role is Role.LOOP)
    if len(loops) > 1:
        raise Rejected(f"the softmax of {exp.name} runs over the loops {' and '.join(loops)}; one is supported.")
    logits, factor, scale = exp.inputs[0], exp.value or LOG2E, ""
    source = nodes[logits]
    for at in source.kind.scaled_by:
        const, other = nodes[source.inputs[at]], source.inputs[1 - at]
        if const.kind is Kind.CONST and const.value > 0 and nodes[other].axes == exp.axes:
            logits, scale = other, const.name
            factor = source.kind.meaning(Numbers(), (LOG2E, const.value), "", ())
            break
    wide = frozenset(axis for axis in reduced & exp.axes if plan[axis].wide)
    shift = Node(
        f"{exp.name}_max", ROWMAX, (logits,), exp.axes - reduced, wide, loops[0] if loops else "", value=factor
    )
    return shift, scale


def _keeps_rows(exp: Node, nodes: Nodes, degree: Mapping[str, float], reduced: frozenset[str]) -> None:
    rows = exp.axes - reduced
    for node in nodes.values():
        if degree[node.name] and not rows <= node.axes:
            missing = ", ".join(sorted(rows - node.axes))
            raise Rejected(f"{node.name} mixes rows of the softmax {exp.name} that have different maxima ({missing}).")


def _runs_along_rows(exp: Node, nodes: Nodes, plan: Plan, degree: Mapping[str, float], reduced: frozenset[str]) -> None:
    """A running sum of what is relative to a maximum adds up what is relative to one and the same."""
    for node in nodes.values():
        together = node.over <= reduced and all(plan[axis].role is not Role.LOOP for axis in node.over)
        if node.kind.scans and degree[node.name] and not together:
            raise Rejected(f"{node.name} runs along values of {exp.name} that have different maxima.")
