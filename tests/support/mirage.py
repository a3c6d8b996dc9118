"""Checkpoints in Mirage's form, written by hand: sizes of tiles follow from the maps."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
PHI = {"x": -1, "y": -1, "z": -1}


class Checkpoint:
    """One kernel graph. Tensors are dictionaries as Mirage writes them."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        """shapes: of the inputs, which lie row by row"""
        self.operators: list[Json] = []
        self.count = 0
        self.inputs = [self.tensor(*shape) for shape in shapes]
        for tensor in self.inputs:
            self.add("kn_input_op", [], [tensor], input_map=PHI, input_strides=row_major(self.shape(tensor)))

    def tensor(self, *shape: int) -> Json:
        self.count += 1
        dim = [*shape, *([0] * (4 - len(shape)))]
        return {"guid": self.count, "dim": dim, "num_dims": len(shape), "data_type": 941, "layout": "DmemRowMajor"}

    @staticmethod
    def shape(tensor: Json) -> tuple[int, ...]:
        return tuple(tensor["dim"][: tensor["num_dims"]])

    def add(self, op_type: str, inputs: list[Json], outputs: list[Json], **fields: Any) -> None:
        operator = {"op_type": op_type, "input_tensors": inputs, "output_tensors": outputs, **fields}
        self.operators.append(operator)

    def kernel(self, op_type: str, inputs: list[Json], *shape: int) -> Json:
        """A pre-defined kernel."""
        made = self.tensor(*shape)
        self.add(op_type, inputs, [made])
        return made

    def block(self, grid: tuple[int, int, int], loop: int, dimx: int = 64) -> Block:
        return Block(self, grid, loop, dimx)

    def finish(self, *outputs: Json) -> list[Json]:
        for tensor in outputs:
            strides = row_major(self.shape(tensor))
            self.add("kn_output_op", [tensor], [], output_map=PHI, output_strides=strides)
        return self.operators


class Block:
    """One graph-defined kernel."""

    def __init__(self, graph: Checkpoint, grid: tuple[int, int, int], loop: int, dimx: int) -> None:
        self.graph = graph
        self.grid = dict(zip("xyz", grid, strict=True))
        self.loop = loop
        self.dimx = dimx
        self.operators: list[Json] = []
        self.read: list[Json] = []
        self.written: list[Json] = []

    def load(self, tensor: Json, forloop_dim: int = -1, **maps: int) -> Json:
        """maps: dimensions of the grid -> the tensor's that they cut"""
        shape = list(self.graph.shape(tensor))
        for dim, number in maps.items():
            shape[number] //= self.grid[dim]
        if forloop_dim >= 0:
            shape[forloop_dim] //= self.loop
        self.read.append(tensor)
        fields = {"dtensor": tensor, "input_map": {**PHI, **maps}, "forloop_dim": forloop_dim}
        return self.op("tb_input_op", [], *shape, **fields)

    def op(self, op_type: str, inputs: list[Json], *shape: int, **fields: Any) -> Json:
        made = self.graph.tensor(*shape)
        self.operators.append({"op_type": op_type, "input_tensors": inputs, "output_tensors": [made], **fields})
        return made

    def store(self, tile: Json, **maps: int) -> Json:
        shape = list(self.graph.shape(tile))
        for dim, number in maps.items():
            shape[number] *= self.grid[dim]
        made = self.graph.tensor(*shape)
        fields = {"dtensor": made, "output_map": {**PHI, **maps}}
        self.operators.append({"op_type": "tb_output_op", "input_tensors": [tile], "output_tensors": [], **fields})
        self.written.append(made)
        return made

    def finish(self) -> None:
        bgraph = {
            "block_dim": {"x": 128, "y": 1, "z": 1},
            "grid_dim": self.grid,
            "forloop_range": self.loop,
            "reduction_dimx": self.dimx,
            "graph_level": "thread_block_graph",
            "smem_offset": 0,
            "operators": self.operators,
        }
        self.graph.add("kn_customized_op", self.read, self.written, bgraph=bgraph)


def row_major(shape: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides


def rmsnorm_linear(accumulator: str = "tb_forloop_accum_nored_op", loop: int = 4) -> list[Json]:
    """x[4, 32], w[32, 12]: the division moved behind the product (Mirage v3, Figure 3b)."""
    graph = Checkpoint((4, 32), (32, 12))
    x, w = graph.inputs
    block = graph.block((3, 1, 1), loop)
    a, b = block.load(x, 1), block.load(w, 0, x=1)
    norm = block.op("tb_forloop_accum_red_ld_rms_op", [a], 4, 1)
    product = block.op("tb_matmul_op", [a, b], 4, 4)
    total = block.op(accumulator, [product], 4, 4)
    out = block.store(block.op("tb_div_op", [total, norm], 4, 4), x=1)
    block.finish()
    return graph.finish(out)


def attention(kernels: tuple[int, int]) -> list[Json]:
    """q[2, 8, 4], k[2, 4, 32], v[2, 32, 4]: sums over parts of the keys, then over the parts, which the two kernels
    cut among (y of the first, y of the second) blocks."""
    first, second = kernels
    graph = Checkpoint((2, 8, 4), (2, 4, 32), (2, 32, 4))
    q, k, v = graph.inputs
    block = graph.block((2, first, 2), 2, 4)
    tiles = [block.load(q, -1, x=0, z=1), block.load(k, 2, x=0, y=2), block.load(v, 1, x=0, y=1)]
    keys = 32 // first // 2
    exp = block.op("tb_exp_op", [block.op("tb_matmul_op", tiles[:2], 1, 4, keys)], 1, 4, keys)
    total = block.op("tb_forloop_accum_red_ld_sum_op", [exp], 1, 4, 1)
    product = block.op("tb_accum_nored_op", [block.op("tb_matmul_op", [exp, tiles[2]], 1, 4, 4)], 1, 4, 4)
    parts = [block.store(total, x=0, y=2, z=1), block.store(product, x=0, y=2, z=1)]
    block.finish()
    block = graph.block((2, second, 1), 2, 4)
    rows = 8 // second
    sums, products = block.load(parts[0], 2, x=0, y=1), block.load(parts[1], 2, x=0, y=1)
    below = block.op("tb_forloop_accum_red_ld_sum_op", [sums], 1, rows, 1)
    above = block.op("tb_forloop_accum_redtox_ld_sum_op", [products], 1, rows, 4)
    out = block.store(block.op("tb_div_op", [above, below], 1, rows, 4), x=0, y=1)
    block.finish()
    return graph.finish(out)


def gated(shape: tuple[int, int, int] = (4, 16, 8)) -> list[Json]:
    """silu(x @ a) * (x @ b), multiplied by a pre-defined kernel."""
    rows, inner, columns = shape
    graph = Checkpoint((rows, inner), (inner, columns), (inner, columns))
    x, a, b = graph.inputs
    block = graph.block((2, 1, 1), 2)
    tile, left, right = block.load(x, 1), block.load(a, 0, x=1), block.load(b, 0, x=1)
    half = columns // 2
    gate = block.op("tb_matmul_op", [tile, left], rows, half)
    up = block.op("tb_matmul_op", [tile, right], rows, half)
    gate = block.op("tb_silu_op", [block.op("tb_forloop_accum_nored_op", [gate], rows, half)], rows, half)
    up = block.op("tb_forloop_accum_nored_op", [up], rows, half)
    parts = [block.store(gate, x=1), block.store(up, x=1)]
    block.finish()
    return graph.finish(graph.kernel("kn_mul_op", parts, rows, columns))
