"""A checkpoint's block graph as ours: tiles get named axes, and partitions become axes too.

Mirage cuts a dimension of a tensor by a dimension of the grid, then by the iterations of the loop (imap, omap and fmap,
Mirage §2); what is left is the tile. Here each cut dimension has an axis for each of the three, in that order: blocks
and iterations take one element of theirs, a tile is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mirage.axes import Axes, Dim, Unlike
from mugraph.ir.mirage.document import Block, BlockOperator, Map
from mugraph.ir.mirage.document import Tensor as Described
from mugraph.ir.mirage.steps import Steps, Tile
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.ops import Kind
from mugraph.ir.tensors import Dims, Tensor
from mugraph.kinds import kind_named

# Operators that are called there as the kinds are here.
_UNARY = ("exp", "sqrt")
_FUNCTIONS = ("silu", "sigmoid", "gelu", "relu", "log")
_BINARY = ("add", "mul", "div")


class _Refused(ValueError):
    """What the graph says is not understood, or makes no sense; the message is for a person."""


class BlockReader:
    """Reads one graph-defined kernel. Raises ValueError with a sentence for a person."""

    def __init__(self, name: str, block: Block, axes: Axes, known: dict[str, Dims] | None) -> None:
        """known: the axes of tensors in memory, as the kernels before this one have them: this one is cut as they are,
        and they as this one. None: it has axes of its own."""
        self.name = name
        self.block = block
        self.axes = axes
        self.known = known
        self.grid = {dim: axes.named(f"{name}_{dim}", getattr(block.grid_dim, dim)) for dim in ("x", "y", "z")}
        self.loop = axes.named(f"{name}_i", block.forloop_range)
        self.steps = Steps(axes)
        self.tiles: dict[int, Tile] = {}
        self.tensors: dict[str, tuple[Tensor, Dims]] = {}

    def run(self, memory: Mapping[int, Tensor], written: Mapping[int, Tensor]) -> None:
        """memory, written: tensors by number that it may read, and those it is to write; their axes are given here"""
        for operator in self.block.operators:
            try:
                self._read(operator, memory, written)
            except Unlike as error:
                raise Unlike(f"{self.name}, {operator.op_type}: {error}") from None

    def _read(self, operator: BlockOperator, memory: Mapping[int, Tensor], written: Mapping[int, Tensor]) -> None:
        what = operator.op_type.removeprefix("tb_").removesuffix("_op")
        if what == "input":
            made = self._load(operator, memory)
        elif what == "output":
            self._store(operator, written)
            return
        else:
            tiles = [self._tile(tensor) for tensor in operator.input_tensors]
            made = self._compute(what, operator, tiles)
        if len(operator.output_tensors) != 1:
            raise _Refused(f"{self.name}: {operator.op_type} has {len(operator.output_tensors)} results")
        (result,) = operator.output_tensors
        shape = tuple(self.axes.size(dim) for dim in made.dims)
        if shape != result.shape:
            raise _Refused(
                f"{self.name}: {operator.op_type} makes a tile of {list(shape)}, said to be {list(result.shape)}"
            )
        self.tiles[result.guid] = made

    # --- memory -------------------------------------------------------------------------------------------------------

    def _load(self, operator: BlockOperator, memory: Mapping[int, Tensor]) -> Tile:
        described, mapping = operator.dtensor, operator.input_map
        if described is None or mapping is None or described.guid not in memory:
            raise _Refused(f"{self.name}: an input iterator names no tensor")
        shape = described.shape
        if not -1 <= operator.forloop_dim < len(shape):
            raise _Refused(f"{self.name}: an input iterator has no dimension {operator.forloop_dim}")
        dims: list[Dim] = []
        tile: list[Dim] = []
        for number, size in enumerate(shape):
            cuts = (*self._grid(mapping, number), *(self.loop if number == operator.forloop_dim else ()))
            if size % self.axes.size(cuts):
                raise _Refused(f"{self.name}: {size} elements are not cut evenly in {self.axes.size(cuts)}")
            tile.append(self.axes.new(size // self.axes.size(cuts)))
            dims.append((*cuts, *tile[-1]))
        tensor = memory[described.guid]
        cuts = frozenset(axis for dim, inner in zip(dims, tile, strict=True) for axis in dim[: len(dim) - len(inner)])
        value = self.steps.load(self._own(tensor, tuple(dims)), cuts, tuple(tile))
        return Tile(value, tuple(tile), cuts)

    def _store(self, operator: BlockOperator, written: Mapping[int, Tensor]) -> None:
        described, mapping = operator.dtensor, operator.output_map
        if described is None or mapping is None or described.guid not in written or len(operator.input_tensors) != 1:
            raise _Refused(f"{self.name}: an output saver names no tensor of the kernel's")
        tile = self._tile(operator.input_tensors[0])
        dims = tuple((*self._grid(mapping, number), *dim) for number, dim in enumerate(tile.dims))
        shape = tuple(self.axes.size(dim) for dim in dims)
        if shape != described.shape:
            raise _Refused(f"{self.name}: tiles of a grid make {list(shape)}, not {list(described.shape)}")
        self.steps.store(self._own(written[described.guid], dims), tile)

    def _grid(self, mapping: Map, number: int) -> Dim:
        """Axes of the grid's dimensions that cut a tensor's. Raises _Refused for two, whose order is not said."""
        cut = [axis for dim in ("x", "y", "z") if getattr(mapping, dim) == number for axis in self.grid[dim]]
        if len(cut) > 1:
            raise _Refused(f"{self.name}: two dimensions of the grid cut one of a tensor's")
        return tuple(cut)

    def _own(self, tensor: Tensor, dims: Dims) -> str:
        """The kernel's name for a tensor it sees with these axes; each is read or written in one way."""
        if tensor.name in self.tensors:
            raise _Refused(f"{self.name} has two iterators of {tensor.name}")
        self.tensors[tensor.name] = (tensor, dims)
        if self.known is not None:
            for one, other in zip(self.known.setdefault(tensor.name, dims), dims, strict=True):
                self.axes.unify(one, other)
        return tensor.name

    def _tile(self, tensor: Described) -> Tile:
        if tensor.guid not in self.tiles:
            raise _Refused(f"{self.name} uses a tile that nothing has made")
        return self.tiles[tensor.guid]

    # --- operators ----------------------------------------------------------------------------------------------------

    def _compute(self, what: str, operator: BlockOperator, tiles: Sequence[Tile]) -> Tile:
        steps = self.steps
        match what, tiles:
            case "matmul", [one, other]:
                return steps.matmul(one, other)
            case "square", [one]:
                return steps.squared(one)
            case "sub", [one, other]:
                return steps.elementwise(Kind.ADD, one, steps.scaled(other, -1.0))
            case _, [one] if what in _UNARY:
                return steps.elementwise(kind_named(what), one)
            case _, [one] if what in _FUNCTIONS:
                return steps.elementwise(Kind.UNARY, one, fn=what)
            case _, [one, other] if what in _BINARY:
                return steps.elementwise(kind_named(what), one, other)
            case _, [one] if what in (f"reduction_{operator.reduce_dim}", f"reduction_{operator.reduce_dim}_to_dimx"):
                to_x = what.endswith("_to_dimx")
                return steps.summed(one, operator.reduce_dim, self.block.reduction_dimx if to_x else 1)
            case _, [one] if what.startswith(("forloop_accum_", "accum_")):
                return self._accumulate(what.partition("accum_")[2], one)
            case _:
                raise _Refused(f"{self.name}: the operator {what} of {len(tiles)} values is not read")

    def _accumulate(self, how: str, tile: Tile) -> Tile:
        """What the iterations make, joined: as it is, or its last dimension summed. The root of the mean of squares
        counts the iterations' elements."""
        steps, last = self.steps, len(tile.dims) - 1
        match how:
            case "nored":
                return steps.accumulated(tile, self.loop)
            case "red_ld_sum":
                return steps.accumulated(steps.summed(tile, last, 1), self.loop)
            case "redtox_ld_sum":
                return steps.accumulated(steps.summed(tile, last, self.block.reduction_dimx), self.loop)
            case "red_ld_mean" | "red_ld_rms":
                count = self.axes.size(tile.dims[last]) * self.block.forloop_range
                of = steps.squared(tile) if how == "red_ld_rms" else tile
                mean = steps.scaled(steps.accumulated(steps.summed(of, last, 1), self.loop), 1.0 / count)
                return steps.elementwise(Kind.SQRT, mean) if how == "red_ld_rms" else mean
            case _:
                raise _Refused(f"{self.name}: the accumulator {how} is not read")

    # --- the kernel ---------------------------------------------------------------------------------------------------

    def kernel(self) -> GraphKernel:
        """When all kernels are read."""
        now = self.axes.now
        tensors = tuple(
            Tensor(tensor.name, tuple(now(dim) for dim in dims), tensor.strides, tensor.dtype)
            for tensor, dims in self.tensors.values()
        )
        for tensor in tensors:
            if len(set(tensor.axes)) < len(tensor.axes):
                raise Unlike(f"{self.name}: {tensor.name} is read along two dimensions as if they were one")
        ops = self.steps.ops()
        grid = tuple((axis, 1) for dim in self.grid.values() for axis in now(dim))
        used = {*(axis for op in ops for axis in op.axes), *(axis for tensor in tensors for axis in tensor.axes)}
        nest: tuple[Loop, ...] = ()
        loops = [axis for axis in now(self.loop) if axis in used]
        for axis in reversed(loops):
            nest = (Loop(axis, nest),)
        warps = max(1, self.block.block_dim.x * self.block.block_dim.y * self.block.block_dim.z // 32)
        sizes = {axis: size for axis, size in self.axes.sizes().items() if axis in used or (axis, 1) in grid}
        block = BlockGraph(self.name, sizes, tensors, ops, nest)
        return GraphKernel(self.name, block, Schedule(grid, dict.fromkeys(loops, 1), num_warps=warps))
