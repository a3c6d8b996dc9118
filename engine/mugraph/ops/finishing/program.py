"""From a built graph to a tensor program: adjacent axes joined, equal operators shared, everything named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.ir.dtypes import DType, is_read, is_written
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, Tensor, contiguous_strides
from mugraph.ir.windows import Window
from mugraph.kinds.naming import Term, title_of
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.complexes import COMPLEX
from mugraph.ops.algebra.nodes import HIDDEN, Node
from mugraph.ops.algebra.packed import BYTES, is_shifted
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.shifts import idle_shifts
from mugraph.ops.finishing.counted_axes import settle_counts
from mugraph.ops.finishing.duplicates import refuse_duplicates
from mugraph.ops.finishing.flat_axes import with_flat_axes
from mugraph.ops.finishing.halves import halves
from mugraph.ops.finishing.joined_axes import JoinedAxes
from mugraph.ops.finishing.names import Names, identifier
from mugraph.ops.finishing.shared_operators import SharedGraph, SharedOperator
from mugraph.ops.finishing.unify import reachable, unify
from mugraph.ops.views import View, bytes_view_of, part_view_of, view_of


@dataclass(frozen=True)
class Output:
    """value: its number. name: of its tensor. dims: the axes it was asked for at."""

    value: int
    name: str
    dims: AtomDims
    node: Node


@dataclass(frozen=True)
class Finished:
    """
    inputs:  input tensor -> the value number it holds, or holds a part of
    origins: operator -> positions of the builder's calls it is part of
    views:   input tensor -> which part, where it is one
    """

    program: TensorProgram
    inputs: dict[str, int]
    origins: dict[str, tuple[int, ...]]
    views: dict[str, View]


def finish(
    builder: Builder, outputs: Sequence[Output], sources: Mapping[int, str], name: str, *, copies: bool = False
) -> Finished:
    """The program and what ties it to the builder's values and calls.

    sources: value number -> what the user's code calls it
    copies:  an output may be an input in another order in memory
    Raises Duplicated where a value would be computed twice, NotLowerable where an output is a broadcast.
    """
    if any(output.node.keep is not None for output in outputs):
        raise NotLowerable("an output with minus infinity in it is outside the fragment")
    if any(is_shifted(output.node) for output in outputs):
        raise NotLowerable("an output of packed integers is outside the fragment")
    unify(builder, [(output.dims, output.node) for output in outputs])
    nodes = reachable(builder, [output.node for output in outputs])
    settle_counts(builder, nodes)
    joined = JoinedAxes(builder, nodes, [output.dims for output in outputs])
    shared = SharedGraph(joined)
    place: dict[Node, int] = {}
    for node in nodes:
        place[node] = shared.place(node, tuple(place[i] for i in node.inputs))
    shared, place = _without_shifts(shared, place, outputs)
    flat = shared.operators
    live = {place[output.node] for output in outputs}
    for i in reversed(range(len(flat))):
        if i in live:
            live.update(flat[i].inputs)
    if not any(flat[i].kind is Kind.LOAD for i in live):
        raise NotLowerable("nothing is read: it is a constant")
    if any(flat[i].fn == HIDDEN for i in live):
        raise NotLowerable("the maximum of values that a mask hides is outside the fragment")
    refuse_duplicates(builder, place, live, flat)
    for output in outputs:
        if flat[place[output.node]].axes != frozenset(x for dim in joined.dims(output.dims) for x in dim):
            raise NotLowerable("an output repeats its numbers along an axis")
        if flat[place[output.node]].kind.is_leaf and not copies:
            raise NotLowerable("an output is an input as it is")
    return _named(builder, outputs, sources, name, joined, flat, sorted(live), place)


def _without_shifts(
    shared: SharedGraph, place: Mapping[Node, int], outputs: Sequence[Output]
) -> tuple[SharedGraph, dict[Node, int]]:
    """The graph without shifts of exponentials that no output depends on, and where its nodes are then."""
    idle = idle_shifts(shared.operators, {place[output.node] for output in outputs})
    return shared.without(idle, place) if idle else (shared, dict(place))


def _axis_names(
    builder: Builder, joined: JoinedAxes, outputs: Sequence[Output], flat: Sequence[SharedOperator], live: Sequence[int]
) -> dict[int, str]:
    """Axes of the outputs first, then in the order they are met; each by its strongest hint that is still free."""
    met = [x for output in outputs for dim in joined.dims(output.dims) for x in dim]
    met += [x for i in live for x in (*(x for dim in flat[i].dims for x in joined.free(dim)), *flat[i].over)]
    axes = list(dict.fromkeys(met))
    axes.sort(key=lambda axis: -max(builder.atoms.hints[axis].values(), default=0))
    names = Names()
    named: dict[int, str] = {}
    for axis in axes:
        hints = builder.atoms.hints[axis]
        name = names.first(sorted(hints, key=lambda hint: -hints[hint]))
        if name is not None:
            named[axis] = name
    return {axis: named[axis] if axis in named else names.letter() for axis in axes}


def _named(
    builder: Builder, outputs: Sequence[Output], sources: Mapping[int, str], name: str, joined: JoinedAxes,
    flat: Sequence[SharedOperator], live: Sequence[int], place: Mapping[Node, int],
) -> Finished:  # fmt: skip
    axis = _axis_names(builder, joined, outputs, flat, live)
    sections = joined.sections
    used = {x for i in live for x in (*flat[i].axes, *flat[i].over)}
    sizes = {axis[x]: joined.sizes[x] for x in axis if x in used}

    def spell(dims: AtomDims) -> Dims:
        return tuple(tuple(axis[x] for x in dim) for dim in dims)

    names = Names()
    tensors: list[Tensor] = []
    inputs: dict[str, int] = {}
    views: dict[str, View] = {}
    title: dict[int, str] = {}
    parts: dict[int, tuple[View, AtomDims]] = {}
    for i in live:
        op = flat[i]
        if op.kind is Kind.LOAD and (op.fn == BYTES or any(x in sections for dim in op.dims for x in dim)):
            info = builder.values[op.source]
            made = part_view_of if info.dtype == COMPLEX else bytes_view_of if op.fn == BYTES else view_of
            windowed = {window.dim for window in op.windows}
            view, dims = made(op.source, info, op.dims, sections, joined.sizes, windowed)
            inside = [dim for dim in builder.inside(op.source) if dim not in windowed]
            loose = any(x in sections for dim in inside for x in op.dims[dim]) and not view.part
            parts[i] = replace(view, copied=loose), dims
    indexed = _Indexed(builder, sources, names, inputs)
    through = halves([(i, view, dims) for i, (view, dims) in parts.items()])
    for i in live:
        op = flat[i]
        if op.kind is Kind.LOAD:
            info, source = builder.values[op.source], sources.get(op.source, f"v{op.source}")
            dims, windows, view = op.dims, op.windows, None
            if i in through:
                dims, windows = parts[i][1], (through[i],)
            elif i in parts:
                view, dims = parts[i]
                windows = tuple(replace(window, dim=view.whole[window.dim]) for window in windows)
                info = view.read
            windows = tuple(indexed.named(window) for window in windows)
            title[i] = names.take(identifier(source) if view is None else f"{identifier(source)}_part")
            source = source if view is None else source + view.text
            inputs[title[i]] = op.source
            if view is not None:
                views[title[i]] = view
            skew = info.skew if view is None else 0
            tensors.append(Tensor(title[i], spell(dims), info.strides, _read(info.dtype), source, windows, skew))
    written: dict[str, Tensor] = {}
    stored = names.copy()  # a tensor may be called what the value in it is called
    results = [stored.take(identifier(output.name)) for output in outputs]
    ops: list[Op] = []
    for i in live:
        op = flat[i]
        if i not in title:
            title[i] = names.take(identifier(op.hint or title_of(Term(i, flat, title))))
        ops.append(
            Op(
                title[i], op.kind, tuple(title[x] for x in op.inputs), tuple(sorted(axis[x] for x in op.axes)),
                tuple(sorted(axis[x] for x in op.over)), title[i] if op.kind is Kind.LOAD else "", op.value,
                "" if op.kind is Kind.LOAD else op.fn, op.f32, *(spell(op.dims) if op.kind.of_places else ()),
                tf32=op.tf32,
            )
        )  # fmt: skip
    for output, result in zip(outputs, results, strict=True):
        value = title[place[output.node]]
        if value in written:
            raise NotLowerable("two outputs are one value")
        dims = spell(joined.dims(output.dims))
        info = builder.values[output.value]
        written[value] = Tensor(result, dims, contiguous_strides(dims, sizes), _dtype(info.dtype), output.name)
    origins = {title[i]: tuple(sorted(flat[i].calls)) for i in live if flat[i].kind not in (Kind.LOAD, Kind.CONST)}
    program = with_flat_axes(TensorProgram(name, sizes, tuple(tensors), tuple(ops), written))
    return Finished(program, inputs, origins, views)


class _Indexed:
    """Names of the indices by which rows are looked up: each is an input of the program, and none of its tensors."""

    def __init__(self, builder: Builder, sources: Mapping[int, str], names: Names, inputs: dict[str, int]) -> None:
        self._builder, self._sources, self._names, self._inputs = builder, sources, names, inputs
        self._known: dict[int, str] = {}

    def named(self, window: Window) -> Window:
        if window.lookup is None:
            return window
        value = self._builder.indices[window.lookup.name]
        source = self._sources.get(value, f"v{value}")
        if value not in self._known:
            self._known[value] = self._names.take(identifier(source))
            self._inputs[self._known[value]] = value
        return replace(window, lookup=replace(window.lookup, name=self._known[value], source=source))


def _read(dtype: str) -> DType:
    if not is_read(dtype):
        raise NotLowerable(f"a tensor of type {dtype} is outside the fragment")
    return dtype


def _dtype(dtype: str) -> DType:
    if not is_written(dtype):
        raise NotLowerable(f"a tensor of type {dtype} is outside the fragment")
    return dtype
