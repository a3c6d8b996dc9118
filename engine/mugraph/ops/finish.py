"""From a built graph to a tensor program: equal operators shared, adjacent axes joined, everything named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from mugraph.ir.ops import LEAVES, Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, DType, Tensor, contiguous_strides
from mugraph.ir.windows import Window
from mugraph.ops.axes import AtomDim, AtomDims
from mugraph.ops.builder import HIDDEN, LOG, Builder, Node
from mugraph.ops.names import Names, identifier
from mugraph.ops.registry import Duplicated, NotLowerable
from mugraph.ops.sections import Section
from mugraph.ops.shifts import idle_shifts
from mugraph.ops.titles import title_of
from mugraph.ops.unify import reachable, unify
from mugraph.ops.views import View, view_of

_COMMUTATIVE = (Kind.ADD, Kind.MUL, Kind.MAX, Kind.DOT)
_Key = tuple[Kind, tuple[int, ...], tuple[int, ...], int, AtomDims, tuple[Window, ...], float, str]


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


@dataclass
class _Flat:
    """An operator of the shared graph; inputs are positions in it. calls: positions of those it is part of."""

    kind: Kind
    inputs: tuple[int, ...]
    over: tuple[int, ...]
    axes: frozenset[int]
    source: int
    dims: AtomDims
    value: float
    fn: str
    f32: bool
    hint: str
    bound: bool
    calls: frozenset[int] = frozenset()
    windows: tuple[Window, ...] = ()


class _Joined:
    """Atoms after joining those that stand side by side everywhere: a view cut them, nothing else did."""

    def __init__(self, builder: Builder, nodes: Sequence[Node], outputs: Sequence[Output]) -> None:
        self._atoms = builder.atoms
        self.sizes: dict[int, int] = {}
        self._gone: set[int] = set()
        lists = [dim for node in nodes for dim in node.runs] + [dim for output in outputs for dim in output.dims]
        lists = [list(run) for dim in lists for run in self._unbroken(dim)]
        overs = [set(builder.atoms.resolve(node.over)) for node in nodes if node.over]
        for atom in (atom for dim in lists for atom in dim):
            self.sizes[atom] = builder.atoms.size[atom]
        for over in overs:
            self.sizes.update((atom, builder.atoms.size[atom]) for atom in over)
        while pair := self._adjacent(lists, overs):
            a, b = pair
            self.sizes[a] *= self.sizes.pop(b)
            self._gone.add(b)
            lists = [[atom for atom in dim if atom != b] for dim in lists]
            overs = [over - {b} for over in overs]

    @staticmethod
    def _adjacent(lists: Sequence[Sequence[int]], overs: Sequence[set[int]]) -> tuple[int, int] | None:
        after: dict[int, set[int]] = {}
        before: dict[int, set[int]] = {}
        for dim in lists:
            for a, b in zip((-1, *dim), (*dim, -1), strict=True):
                after.setdefault(a, set()).add(b)
                before.setdefault(b, set()).add(a)
        for a, nexts in after.items():
            if a < 0 or len(nexts) != 1:
                continue
            (b,) = nexts
            if b >= 0 and before[b] == {a} and all((a in over) == (b in over) for over in overs):
                return a, b
        return None

    def _unbroken(self, dim: Sequence[int]) -> list[AtomDim]:
        """The dimension, cut at its sections, and what those run over."""
        runs: list[AtomDim] = [()]
        for atom in self._atoms.resolve(dim):
            section = self._atoms.sections.get(atom)
            if section is None:
                runs[-1] = (*runs[-1], atom)
            else:
                runs += [*self._unbroken(section.inner), ()]
        return runs

    @property
    def sections(self) -> dict[int, Section]:
        """What sections are of the axes that are left."""
        return {atom: replace(section, inner=self.dim(section.inner)) for atom, section in self._atoms.sections.items()}

    def free(self, dim: Sequence[int]) -> AtomDim:
        """What a dimension runs over."""
        return tuple(atom for atom in self._atoms.free(dim) if atom not in self._gone)

    def axes(self, dims: AtomDims) -> frozenset[int]:
        """What the dimensions run over."""
        return frozenset(atom for dim in dims for atom in self.free(dim))

    def dim(self, atoms: Sequence[int]) -> tuple[int, ...]:
        return tuple(atom for atom in self._atoms.resolve(atoms) if atom not in self._gone)

    def dims(self, dims: AtomDims) -> AtomDims:
        return tuple(self.dim(dim) for dim in dims)


class _Shared:
    """The graph with equal operators shared (alpha-equal ones are equal by now)."""

    def __init__(self, joined: _Joined) -> None:
        self.flat: list[_Flat] = []
        self._known: dict[_Key, int] = {}
        self._joined = joined

    def place(self, node: Node, inputs: tuple[int, ...]) -> int:
        """The node's position. Sums over axes an operand lacks become products with their size, maxima nothing."""
        over = self._joined.dim(node.over)
        if node.kind is Kind.SUM:
            return self._sum(inputs[0], over, node)
        if node.kind is Kind.AMAX:
            present = tuple(x for x in over if x in self.flat[inputs[0]].axes)
            return self._op(node, Kind.AMAX, inputs, present) if present else inputs[0]
        if node.kind is Kind.DOT:
            a, b = (self.flat[i].axes for i in inputs)
            left = self._sum(inputs[0], tuple(x for x in over if x in a and x not in b), node)
            right = self._sum(inputs[1], tuple(x for x in over if x in b and x not in a), node)
            both = tuple(x for x in over if x in a and x in b)
            missing = tuple(x for x in over if x not in a and x not in b)
            made = self._op(node, Kind.DOT if both else Kind.MUL, (left, right), both)
            return self._repeat(made, missing, node)
        return self._op(node, node.kind, inputs, ())

    def _sum(self, i: int, over: tuple[int, ...], node: Node) -> int:
        present = tuple(x for x in over if x in self.flat[i].axes)
        missing = tuple(x for x in over if x not in self.flat[i].axes)
        return self._repeat(self._op(node, Kind.SUM, (i,), present) if present else i, missing, node)

    def _repeat(self, i: int, missing: tuple[int, ...], node: Node) -> int:
        if not missing:
            return i
        count = 1.0
        for axis in missing:
            count *= self._joined.sizes[axis]
        constant = self._put(_Flat(Kind.CONST, (), (), frozenset(), -1, (), count, "", False, "", False))
        return self._op(node, Kind.MUL, (constant, i), ())

    def _op(self, node: Node, kind: Kind, inputs: tuple[int, ...], over: tuple[int, ...]) -> int:
        dims = self._joined.dims(node.dims)
        axes = self._joined.axes(node.dims).union(*(self.flat[i].axes for i in inputs)) - set(over)
        over = tuple(sorted(over))
        named = kind is node.kind  # an operator that stands in for the node goes by what it does itself
        hint, bound = (node.hint, node.bound) if named else ("", False)
        calls = frozenset({node.call}) - {-1}
        windows = tuple(replace(window, taps=len(self._joined.dim(taps))) for window, taps in node.windows)
        return self._put(
            _Flat(
                kind, inputs, over, axes, node.source, dims, node.value, node.fn, node.f32, hint, bound, calls, windows
            )
        )

    def without(self, sums: Mapping[int, int], place: Mapping[Node, int]) -> tuple[_Shared, dict[Node, int]]:
        """The graph with one operand in place of each of these sums, and where its nodes are then."""
        found = _Shared(self._joined)
        moved: list[int] = []
        for i, flat in enumerate(self.flat):
            kept = sums.get(i)
            moved.append(
                found._put(replace(flat, inputs=tuple(moved[j] for j in flat.inputs))) if kept is None else moved[kept]
            )
        return found, {node: moved[i] for node, i in place.items()}

    def _put(self, flat: _Flat) -> int:
        inputs = tuple(sorted(flat.inputs)) if flat.kind in _COMMUTATIVE else flat.inputs
        key = (flat.kind, inputs, flat.over, flat.source, flat.dims, flat.windows, flat.value, flat.fn)
        if key not in self._known:
            self._known[key] = len(self.flat)
            self.flat.append(flat)
        found = self.flat[self._known[key]]
        found.f32 |= flat.f32
        found.calls |= flat.calls
        if flat.hint and (not found.hint or (flat.bound and not found.bound)):
            found.hint, found.bound = flat.hint, flat.bound
        return self._known[key]


def finish(builder: Builder, outputs: Sequence[Output], sources: Mapping[int, str], name: str) -> Finished:
    """The program and what ties it to the builder's values and calls.

    sources: value number -> what the user's code calls it
    Raises Duplicated where a value would be computed twice, NotLowerable where an output is a broadcast.
    """
    if any(output.node.cases for output in outputs):
        raise NotLowerable("a concatenation that no sum takes apart is written by PyTorch")
    if any(output.node.keep is not None for output in outputs):
        raise NotLowerable("an output with minus infinity in it is outside the fragment")
    unify(builder, [(output.dims, output.node) for output in outputs])
    nodes = reachable(builder, [output.node for output in outputs])
    joined = _Joined(builder, nodes, outputs)
    shared = _Shared(joined)
    place: dict[Node, int] = {}
    for node in nodes:
        place[node] = shared.place(node, tuple(place[i] for i in node.inputs))
    shared, place = _without_shifts(shared, place, outputs)
    flat = shared.flat
    live = {place[output.node] for output in outputs}
    for i in reversed(range(len(flat))):
        if i in live:
            live.update(flat[i].inputs)
    if any(flat[i].fn == HIDDEN for i in live):
        raise NotLowerable("the maximum of values that a mask hides is outside the fragment")
    if any(flat[i].fn == LOG for i in live):
        raise NotLowerable("a logarithm that no exponential is taken of is outside the fragment")
    _refuse_duplicates(builder, place, live, flat)
    for output in outputs:
        if flat[place[output.node]].axes != frozenset(x for dim in joined.dims(output.dims) for x in dim):
            raise NotLowerable("an output repeats its numbers along an axis")
        if flat[place[output.node]].kind in LEAVES:
            raise NotLowerable("an output is an input as it is")
    return _named(builder, outputs, sources, name, joined, flat, sorted(live), place)


def _without_shifts(
    shared: _Shared, place: Mapping[Node, int], outputs: Sequence[Output]
) -> tuple[_Shared, dict[Node, int]]:
    """The graph, and where its nodes are, without what exponentials are shifted by to no effect."""
    idle = idle_shifts(shared.flat, {place[output.node] for output in outputs})
    return shared.without(idle, place) if idle else (shared, dict(place))


def _refuse_duplicates(builder: Builder, place: Mapping[Node, int], live: set[int], flat: Sequence[_Flat]) -> None:
    order = [output for call in builder.calls for output in call.outputs]
    for value in reversed(order):
        roles = {place[node]: dims for dims, node in builder.demands.get(value, {}).items() if node in place}
        computed = [dims for i, dims in roles.items() if i in live and flat[i].kind not in LEAVES]
        if any(not _apart(builder, one, two) for one, two in combinations(computed, 2)):
            raise Duplicated(value)


def _apart(builder: Builder, one: AtomDims, two: AtomDims) -> bool:
    """Are these different parts of a value?"""
    atoms = builder.atoms
    for a, b in zip(atoms.resolve_dims(one), atoms.resolve_dims(two), strict=True):
        (first, last), (other_first, other_last) = atoms.bounds(a), atoms.bounds(b)
        if last < other_first or other_last < first:
            return True
        if [atoms.size[atom] for atom in a] == [atoms.size[atom] for atom in b]:
            sections = [(atoms.sections.get(x), atoms.sections.get(y)) for x, y in zip(a, b, strict=True)]
            if any(x and y and not x.inner and not y.inner and x.start != y.start for x, y in sections):
                return True
    return False


def _axis_names(
    builder: Builder, joined: _Joined, outputs: Sequence[Output], flat: Sequence[_Flat], live: Sequence[int]
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
    builder: Builder, outputs: Sequence[Output], sources: Mapping[int, str], name: str, joined: _Joined,
    flat: Sequence[_Flat], live: Sequence[int], place: Mapping[Node, int],
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
    for i in live:
        op = flat[i]
        if op.kind is Kind.LOAD:
            info, source = builder.values[op.source], sources.get(op.source, f"v{op.source}")
            dims, view = op.dims, None
            if any(x in sections for dim in op.dims for x in dim):
                view, dims = view_of(op.source, info, op.dims, sections, joined.sizes)
                info = view.info
            title[i] = names.take(identifier(source) if view is None else f"{identifier(source)}_part")
            source = source if view is None else source + view.text
            inputs[title[i]] = op.source
            if view is not None:
                views[title[i]] = view
            tensors.append(Tensor(title[i], spell(dims), info.strides, _dtype(info.dtype), source, op.windows))
    written: dict[str, Tensor] = {}
    stored = names.copy()  # a tensor may be called what the value in it is called
    results = [stored.take(identifier(output.name)) for output in outputs]
    ops: list[Op] = []
    for i in live:
        op = flat[i]
        if i not in title:
            title[i] = names.take(identifier(op.hint or title_of(op, flat, title)))
        ops.append(
            Op(
                title[i], op.kind, tuple(title[x] for x in op.inputs), tuple(sorted(axis[x] for x in op.axes)),
                tuple(sorted(axis[x] for x in op.over)), title[i] if op.kind is Kind.LOAD else "", op.value, op.fn,
                op.f32, *(spell(op.dims) if op.kind is Kind.MASK else ()),
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
    return Finished(TensorProgram(name, sizes, tuple(tensors), tuple(ops), written), inputs, origins, views)


def _dtype(dtype: str) -> DType:
    if dtype == "f16":
        return "f16"
    if dtype == "bf16":
        return "bf16"
    if dtype == "f32":
        return "f32"
    raise NotLowerable(f"a tensor of type {dtype} is outside the fragment")
