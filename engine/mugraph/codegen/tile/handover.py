"""Sums that one kernel leaves to another: stored with the row maxima they are relative to, loaded and made comparable.

Thread blocks that each sum a part of a softmax's row have a maximum each. The first kernel stores that maximum, m, and
the sum s of exponentials relative to it. The sum that the second kernel's graph speaks of is s * exp2(m) ** degree.

So the second kernel is a softmax itself, over the parts, with m as its logits. The pass that makes softmax safe
(softmax.py) makes it safe too, or rejects it if its outputs depend on the shift (Mirage v1, Figure 4b; FlashDecoding).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mugraph.codegen.tile.analyses import Analyses
from mugraph.codegen.tile.axes import Plan
from mugraph.codegen.tile.kinds import POWER, SUB
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.codegen.tile.softmax import LOG2E, Degree, SafeSoftmax
from mugraph.ir.block import BlockGraph
from mugraph.ir.kernel import Rejected, Unfinished
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.ops.functions.degrees import NoDegree


def with_maxima(
    block: BlockGraph, softmax: SafeSoftmax, known: Collection[str] = ()
) -> tuple[BlockGraph, SafeSoftmax, Unfinished]:
    """The kernel with a store for each maximum its outputs are relative to, and what the next kernel must know of them,
    all but its field `storage`.

    known: names of maxima that kernels before it store
    """
    stores = [node for node in softmax.nodes.values() if node.kind is Kind.STORE]
    degrees = {node.tensor: dict(softmax.degrees[node.name]) for node in stores if softmax.degrees.get(node.name)}
    nodes, ops, maxima = dict(softmax.nodes), list(block.ops), dict[str, Tensor]()
    names: dict[str, str] = {}  # ROWMAX -> its tensor
    for node in stores:
        for shift in degrees.get(node.tensor, ()):
            if shift in names:
                continue
            taken = {*known, *(tensor.name for tensor in (*block.tensors, *maxima.values()))}
            names[shift] = name = take(numbered(shift), taken)
            maxima[name] = _tensor(name, nodes[shift], block.tensor(node.tensor), block.sizes)
            store = take(numbered(f"store_{name}"), {*nodes})
            nodes[store] = Node(store, Kind.STORE, (shift,), nodes[shift].axes, tensor=name)
            ops.append(Op(store, Kind.STORE, (), maxima[name].axes, tensor=name))
    relative = {tensor: {names[shift]: d for shift, d in one.items()} for tensor, one in degrees.items()}
    handed = Unfinished(tuple(maxima.values()), relative)
    block = replace(block, tensors=(*block.tensors, *maxima.values()), ops=tuple(ops))
    return block, replace(softmax, nodes=nodes), handed


def storage_of(block: BlockGraph, facts: Analyses, nodes: Nodes) -> Mapping[str, tuple[str, ...]]:
    """Output -> types of the tensors it was computed from."""
    stores = {node.tensor: node.inputs[0] for node in nodes.values() if node.kind is Kind.STORE}
    return {tensor.name: tuple(sorted(facts.storage[stores[tensor.name]])) for tensor in block.outputs}


def absolute(nodes: dict[str, Node], plan: Plan, handed: Unfinished) -> dict[str, Node]:
    """The second kernel's nodes with each loaded sum times exp2 of the maximum it is relative to."""
    loaded = {node.tensor for node in nodes.values() if node.kind is Kind.LOAD}
    wanted = {name for tensor, one in handed.degrees.items() if tensor in loaded for name in one}
    out: dict[str, Node] = {}
    weights: dict[str, str] = {}
    taken = set(nodes)
    for tensor in handed.maxima:
        if tensor.name not in wanted:
            continue
        axes = frozenset(axis for axis in tensor.axes if axis in plan)
        load = Node(take(numbered(tensor.name), taken), Kind.LOAD, (), axes, tensor=tensor.name)
        weights[tensor.name] = take(numbered("weight"), taken)
        out[load.name] = load
        out[weights[tensor.name]] = Node(weights[tensor.name], Kind.EXP, (load.name,), axes, value=1.0)
    alias: dict[str, str] = {}
    for node in nodes.values():
        out[node.name] = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
        if node.kind is not Kind.LOAD:
            continue
        value = node.name
        for name, degree in handed.degrees.get(node.tensor, {}).items():
            if degree < 1 or degree != int(degree):
                raise Rejected(f"{node.tensor} is of degree {degree:g} in an exponential; whole ones can be finished.")
            for _ in range(int(degree)):
                product = take(numbered(f"{node.name}_weighted"), taken)
                axes = out[value].axes | out[weights[name]].axes
                out[product] = Node(product, Kind.MUL, (value, weights[name]), axes)
                value = product
        alias[node.name] = value
    return out


def relative(nodes: Nodes, plan: Plan, handed: Unfinished) -> dict[str, Node] | None:
    """The nodes of a kernel that takes exponentials again, element by element, and divides them by sums of them that it
    loads: exp(x) is exp2(x log2(e) - m), and the sums stay as they are, relative to the same m. None where that is not
    the same: where an output is not of degree 0 in both together, or something is summed again.
    """
    exps = [node for node in nodes.values() if node.kind is Kind.EXP]
    loaded = {node.name: handed.degrees[node.tensor] for node in nodes.values() if handed.degrees.get(node.tensor)}
    names = {name for degrees in loaded.values() for name in degrees}
    if not exps or len(names) != 1:
        return None
    (name,) = names
    tensor = next(tensor for tensor in handed.maxima if tensor.name == name)
    rows = frozenset(axis for axis in tensor.axes if axis in plan)
    own = {exp.name: 1.0 for exp in exps} | {load: degrees[name] for load, degrees in loaded.items()}
    if not _is_of_degree_0(nodes, own, rows):
        return None
    taken = set(nodes)
    load, factor = take(numbered(name), taken), take(numbered("log2e"), taken)
    out = {load: Node(load, Kind.LOAD, (), rows, tensor=name), factor: Node(factor, Kind.CONST, value=LOG2E)}
    for node in nodes.values():
        if node.kind is Kind.EXP:
            scaled, below = (take(numbered(f"{node.name}_{what}"), taken) for what in ("scaled", "shifted"))
            out[scaled] = Node(scaled, Kind.MUL, (factor, node.inputs[0]), node.axes)
            out[below] = Node(below, SUB, (scaled, load), node.axes)
            out[node.name] = replace(node, kind=POWER, inputs=(below,))
        else:
            out[node.name] = node
    return out


def _is_of_degree_0(nodes: Nodes, own: Mapping[str, float], rows: frozenset[str]) -> bool:
    """own: degrees of exponentials and of loaded sums"""
    numbers, degrees = Degree(), dict[str, float]()
    for node in nodes.values():
        below = [degrees[name] for name in node.inputs]
        if (node.kind.reduces or node.kind.scans) and any(below):
            return False
        try:
            if node.name in own:
                found = own[node.name]
            elif node.kind is Kind.STORE:
                found = numbers.none(*below)
            elif node.kind.is_leaf:
                found = 0.0
            else:
                found = node.kind.meaning(numbers, below, node.fn, node.over)
        except NoDegree:
            return False
        if found and not rows <= node.axes:
            return False
        degrees[node.name] = found
    return True


def with_loads(block: BlockGraph, handed: Unfinished) -> BlockGraph:
    """The second kernel's graph with the maxima among its inputs."""
    names = {tensor.name for tensor in block.tensors}
    wanted = {name for tensor, one in handed.degrees.items() if tensor in names for name in one}
    return replace(block, tensors=(*block.inputs, *(t for t in handed.maxima if t.name in wanted), *block.outputs))


def _tensor(name: str, shift: Node, output: Tensor, sizes: Sizes) -> Tensor:
    """Of the maxima, in the memory order of an output that is relative to them."""
    dims = tuple((axis,) for axis in output.axes if axis in shift.axes)
    return Tensor(name, dims, contiguous_strides(dims, sizes), "f32")
