"""The kernels that eager PyTorch launches for recorded calls: one for a layer norm, a softmax, an attention; none for a
view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypedDict

from mugraph.baseline.contractions import Step, contractions
from mugraph.ir.calls import Argument, Call, Ref, TensorInfo, is_inplace, operands
from mugraph.ir.dtypes import itemsize
from mugraph.ir.library import Product
from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.registry import canonical

Work = Literal["elementwise", "reduction", "product", "convolution", "attention", "pooling"]
Values = Mapping[int, TensorInfo]

_VIEWS = frozenset(
    """
    view view_as reshape_as transpose swapaxes swapdims t T mT H mH permute movedim moveaxis unsqueeze squeeze
    expand expand_as broadcast_to getitem narrow select split tensor_split chunk unbind unflatten detach alias
    as_strided diagonal unfold numpy_T real
    """.split()  # noqa: SIM905 - a word list is read more easily
)
_MAY_COPY = frozenset(("reshape", "flatten", "contiguous", "ravel"))
_MAY_CONVERT = frozenset(
    """
    to type type_as float half bfloat16 double int long bool
    """.split()  # noqa: SIM905 - a word list is read more easily
)
_PRODUCTS = frozenset(
    """
    matmul mm bmm mv dot rmatmul linear addmm baddbmm addbmm addmv outer ger einsum bilinear tensordot inner
    _scaled_mm _scaled_mm_v2 _grouped_mm
    """.split()  # noqa: SIM905 - a word list is read more easily
)
_REDUCTIONS = frozenset(
    """
    sum mean amax amin max min prod var std norm vector_norm softmax log_softmax softmin rms_norm layer_norm any
    all argmax argmin cumsum cross_entropy nll_loss adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    """.split()  # noqa: SIM905 - a word list is read more easily
)
_FUNCTIONS = frozenset(
    """
    exp exp2 expm1 log log2 log1p tanh sigmoid logsigmoid silu gelu erf mish elu selu celu softplus softmax log_softmax
    sin cos pow logsumexp
    """.split()  # noqa: SIM905 - a word list is read more easily
)
"""Calls that take an exponential or the like of each element."""
_IMAGES = 4
"""Dimensions of images. torch.compile leaves those of more, and of fewer, as they lie."""
_CHANNELS = 8
"""That a convolution needs at least for the tensor cores."""
_PASSES = {
    "normalize": 3, "logsumexp": 4, "cosine_similarity": 6, "group_norm": 2, "instance_norm": 2, "cross_entropy": 2,
    "std": 2,
}  # fmt: skip
"""Of calls that run as several kernels: a reduction, then element by element."""

_POOLS = ("avg_pool", "max_pool")
_LARGE_WINDOW = 25
"""Elements; torch.compile leaves pooling with larger ones to PyTorch's kernel."""

_LOSSES = {
    "mse_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1, "l1_loss": 2, "kl_div": 3, "soft_margin_loss": 4,
    "margin_ranking_loss": 4, "binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 4,
}  # fmt: skip
"""Element-wise kernels of losses; the sum or mean of what they leave is another one."""
_SUMS_OF_DISTANCES = {"pairwise_distance": 1, "triplet_margin_loss": 2}
"""Distances, each a difference, eps added to it, and a norm."""
_SHARES = {"softmax": 0.12, "log_softmax": 0.12, "softmin": 0.12}
"""Of `row_us` that a turn takes where one thread block has the row: it reads 16 bytes a thread at once. (Measured on an
H200, 26 November, rows of 0.5 to 32 MB: 0.16 to 0.23 microseconds for three turns of 2,048 bytes of a softmax; 1.0 to
2.0 for two of a layer norm.)"""
LONG_ROW = 256 << 10
"""Bytes."""
_AGAIN = {"softmax": 2, "log_softmax": 2, "softmin": 2, "layer_norm": 1, "rms_norm": 1, "group_norm": 0}
"""Times that a kernel of one call reads a long row again: for a maximum, for a sum, for what it writes."""
_ALONE = frozenset({"softmax", "log_softmax", "softmin", "layer_norm", "rms_norm"})
"""One thread block has a row to itself, whatever its length."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel.

    reads:    memory it reads: number of the value that owns it -> bytes
    writes:   number of the value -> bytes
    products: one after the other, of matrices
    dtype:    that it computes in
    is_causal: of an attention: half of the scores are not computed
    row:      of a reduction: bytes that are reduced to one number, or to one row of the same length
    turns:    how often a thread block goes along a row that it has to itself, whatever its length; 0 where several
              blocks share one
    share:    of `row_us` that such a turn takes
    functions: exponentials and the like that it computes
    dims:     of the result of a product
    is_narrow: of a convolution: it has too few channels for the tensor cores
    may_turn: of a convolution: it is faster with its operand channels last, the copy counted
    turned:   bytes of that copy, where the operand lies channels last already
    scattered: of a copy to another order in memory: elements, whose neighbours are written far from one another
    windows, taps: of pooling: its windows, and the elements of all of them
    takes_tf32: PyTorch computes its float32 products on the tensor cores
    """

    work: Work
    reads: Mapping[int, int]
    writes: Mapping[int, int]
    products: tuple[Product, ...] = ()
    dtype: str = "f16"
    is_causal: bool = False
    row: int = 0
    turns: int = 0
    share: float = 1.0
    functions: int = 0
    dims: int = 0
    is_narrow: bool = False
    may_turn: bool = False
    turned: int = 0
    scattered: int = 0
    windows: int = 0
    taps: int = 0
    takes_tf32: bool = False

    @property
    def is_library(self) -> bool:
        """Is it a kernel of a library's?"""
        return self.work in ("product", "convolution", "attention")

    @property
    def is_apart(self) -> bool:
        """Does torch.compile leave it as it is?"""
        return self.is_library or self.taps > _LARGE_WINDOW * self.windows

    @property
    def tf32(self) -> Tf32:
        """The setting by which it is computed so; "" where it is not."""
        if not self.takes_tf32 or self.work not in ("product", "convolution"):
            return ""
        return "cublas" if self.work == "product" else "cudnn"

    @property
    def is_long(self) -> bool:
        """Are its rows too long for a processor to hold them, and too many at a time for the cache?"""
        return self.row > LONG_ROW


def name_of(call: Call) -> str:
    """`softmax` of "torch.nn.functional.softmax", `add` of "Tensor.__iadd__", `T` of "Tensor.T.__get__"."""
    parts = canonical(call.target).removesuffix(".__get__").split(".")
    name = parts[-1]
    if name.startswith("__"):
        name = name.strip("_")
        return name[1:] if name[0] in "ri" and name[1:] in ("add", "sub", "mul", "truediv", "pow", "div") else name
    return name.rstrip("_") or name


def launches(calls: Sequence[Call], values: Values) -> tuple[Launch, ...]:
    """In the order they run."""
    owners: dict[int, int] = {}
    found: list[Launch] = []
    for call in calls:
        viewed = _views_of(call, values, owners)
        owners.update(viewed)
        found += _of(name_of(call), call, values, owners) if not viewed else []
    return tuple(found)


def owners_of(calls: Sequence[Call], values: Values) -> dict[int, int]:
    """Of views: the value whose memory they are of, which is no view that these calls make."""
    owners: dict[int, int] = {}
    for call in calls:
        owners.update(_views_of(call, values, owners))
    return owners


def _views_of(call: Call, values: Values, owners: Mapping[int, int]) -> dict[int, int]:
    """What a call makes, where that is views; nothing where it computes something."""
    read = operands(call)
    if not read or not _is_view(name_of(call), call, values):
        return {}
    return dict.fromkeys(call.outputs, owners.get(read[0], read[0]))


def _is_view(name: str, call: Call, values: Values) -> bool:
    source, out = values[operands(call)[0]], values[call.outputs[0]]
    if name in _VIEWS:
        return name != "getitem" or not any(isinstance(part, Ref) for part in _parts(call.args[1:]))
    if name in _MAY_CONVERT:
        return source.dtype == out.dtype
    if name == "contiguous" and "memory_format" in call.kwargs:
        return _same_places(source, out)
    return name in _MAY_COPY and _is_dense(source)


def _same_places(one: TensorInfo, other: TensorInfo) -> bool:
    return all(size == 1 or a == b for size, a, b in zip(one.shape, one.strides, other.strides, strict=True))


def _parts(arguments: Sequence[Argument]) -> Iterator[Argument]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _parts(argument)
        else:
            yield argument


def _is_dense(info: TensorInfo) -> bool:
    """Its elements lie row by row."""
    expected = 1
    for size, stride in reversed(list(zip(info.shape, info.strides, strict=True))):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _nearest(info: TensorInfo) -> int:
    """The dimension along which neighbours lie nearest in memory."""
    steps = [(stride, dim) for dim, (size, stride) in enumerate(zip(info.shape, info.strides, strict=True)) if size > 1]
    return min(steps)[1] if steps else 0


def _is_channels_last(info: TensorInfo) -> bool:
    """Of an image."""
    return info.strides[1] == 1 and info.strides[-1] > 1 and not _is_dense(info)


def held_bytes(info: TensorInfo) -> int:
    """Of memory that a tensor is in: an axis it is expanded along is there once."""
    sizes = [size for size, stride in zip(info.shape, info.strides, strict=True) if stride or size == 1]
    return prod(sizes) * itemsize(info.dtype)


def _of(name: str, call: Call, values: Values, owners: Mapping[int, int]) -> Iterator[Launch]:
    reads: dict[int, int] = {}
    for value in operands(call):
        reads[owners.get(value, value)] = reads.get(owners.get(value, value), 0) + held_bytes(values[value])
    writes = {value: held_bytes(values[value]) for value in call.outputs}
    dtype = values[operands(call)[0]].dtype if reads else values[call.outputs[0]].dtype
    elements = max((prod(values[value].shape) for value in (*operands(call), *call.outputs)), default=0)
    functions = elements if name in _FUNCTIONS else 0
    launch = Launch("elementwise", reads, writes, dtype=dtype, functions=functions, takes_tf32=call.tf32)
    if name == "contiguous" and _nearest(values[operands(call)[0]]) != _nearest(values[call.outputs[0]]):
        launch = replace(launch, scattered=elements)
    if name in _GATHERS:
        launch = replace(launch, reads=_gathered(call, values, reads, owners))
    if name in _WRITTEN_PARTS and is_inplace(call):
        yield replace(launch, **_written(call, values, owners))
        return
    if name == "scaled_dot_product_attention":
        causal = call.kwargs.get("is_causal") is True or True in call.args[5:6]
        for value in operands(call)[3:]:
            if values[value].dtype == "bool":
                for size in mask_bytes(held_bytes(values[value]), dtype):
                    yield Launch("elementwise", {}, {_BETWEEN - call.outputs[0]: size}, dtype=dtype)
        yield replace(launch, work="attention", products=_attention(call, values), is_causal=causal)
    elif name.startswith("conv") and name[-1:] == "d":
        source, weight, *_ = _tensors(call, values)
        converts = dtype in ("f16", "bf16") and _is_dense(source) and weight.shape[1:] != (1,) * len(weight.shape[1:])
        if converts:  # the tensor cores take channels last
            yield Launch("elementwise", {**reads}, {}, dtype=dtype)
        narrow = weight.shape[0 if "transpose" in name_of(call) else 1] < _CHANNELS
        # In 16 bits the copies are counted as kernels of their own.
        turns = dtype == "f32" and len(source.shape) == _IMAGES and prod(weight.shape[2:]) > 1
        products = _convolution(call, values)
        turns = turns and all(product.matrices == 1 for product in products)
        turned = held_bytes(source) if turns and _is_channels_last(source) else 0
        turns = turns and _is_dense(source)
        yield replace(launch, work="convolution", products=products, is_narrow=narrow, may_turn=turns, turned=turned)
        if converts:
            yield Launch("elementwise", {**writes}, {}, dtype=dtype)
        bias = call.args[2] if len(call.args) > 2 else call.kwargs.get("bias")
        if isinstance(bias, Ref):  # PyTorch adds it on its own
            yield Launch("elementwise", {**writes}, writes, dtype=dtype)
    elif name.removesuffix("_with_indices")[:-2] in _POOLS:
        windows = prod(values[call.outputs[0]].shape)
        yield replace(launch, work="pooling", windows=windows, taps=windows * _window(call, int(name[8])))
    elif name in _LOSSES:
        yield from _loss(launch, _LOSSES[name], call, values)
    elif name in _SUMS_OF_DISTANCES:
        yield from _distances(launch, _SUMS_OF_DISTANCES[name], call, values)
    elif name == "einsum" and (steps := _steps(call, values)) is not None:
        yield from _contracted(launch, steps, call, values, owners)
    elif name in _PRODUCTS:
        dims = len(values[call.outputs[0]].shape)
        yield replace(launch, work="product", products=(_product(call, values),), dims=dims)
    else:
        if name in _REDUCTIONS or name in _PASSES:
            found = row_launch(name, reads, writes, _row(call, values))
            yield replace(
                launch, work="reduction", reads=found.reads, row=found.row, turns=found.turns, share=found.share
            )
        else:
            yield launch
        for _ in range(_PASSES.get(name, 1) - 1):
            yield Launch("elementwise", {**writes}, writes, dtype=dtype)


def mask_bytes(truths: int, dtype: str) -> tuple[int, ...]:
    """Of a mask of truth values, which PyTorch's attention makes numbers: bytes read and written by each kernel that
    fills them with zeros, negates, and writes minus infinity."""
    size = itemsize(dtype)
    return (truths * size, truths * 2, truths * (1 + 2 * size)) if truths else ()


def row_launch(name: str, reads: Mapping[int, int], writes: Mapping[int, int], row: int) -> Launch:
    """Of a call that reduces rows. row: bytes of one"""
    again = _AGAIN.get(name, 0) if row > LONG_ROW else 0
    read = {value: size * (1 + again) for value, size in reads.items()}
    turns = 1 + _AGAIN[name] if name in _ALONE else 0
    return Launch("reduction", read, writes, row=row, turns=turns, share=_SHARES.get(name, 1.0))


_WRITTEN_PARTS = frozenset({"setitem", "index_copy", "copy"})
"""Calls that write what they are given, their last argument, into a part of a tensor."""


_GATHERS = frozenset({"embedding", "getitem", "gather", "index_select", "take", "take_along_dim"})
"""Calls that read elements of a table, which others of their tensors choose."""


def _gathered(call: Call, values: Values, reads: Mapping[int, int], owners: Mapping[int, int]) -> dict[int, int]:
    """Of the table no more bytes than are written: one row of an embedding's weights, for one token."""
    table = operands(call)[1 if name_of(call) == "embedding" else 0]
    written = sum(held_bytes(values[value]) for value in call.outputs)
    owner = owners.get(table, table)
    return {**reads, owner: min(reads[owner], written)}


class _Bytes(TypedDict):
    reads: dict[int, int]
    writes: dict[int, int]


def _written(call: Call, values: Values, owners: Mapping[int, int]) -> _Bytes:
    """The bytes of what is written, read once and written once; of a number, at most the whole tensor."""
    whole, last = held_bytes(values[call.outputs[0]]), call.args[-1]
    if not isinstance(last, Ref):
        return {"reads": {}, "writes": {call.outputs[0]: whole}}
    size = min(whole, held_bytes(values[last.value]))
    return {"reads": {owners.get(last.value, last.value): size}, "writes": {call.outputs[0]: size}}


_BETWEEN = -1
"""Stands for the value that one kernel of a call leaves to the next."""
_APART = 1 << 20
"""More than a region has values: what the steps of one call leave have each a number of its own."""


def _loss(launch: Launch, passes: int, call: Call, values: Values) -> Iterator[Launch]:
    """Element by element, then the sum of that, if there is one."""
    summed = "none" not in (*call.args, *call.kwargs.values())
    between = _left_between(call, values, launch) if summed else launch.writes
    yield replace(launch, writes=between)
    for _ in range(passes - 1):
        yield replace(launch, reads=between, writes=between)
    if summed:
        yield replace(launch, work="reduction", reads=between, row=sum(between.values()))


def _distances(launch: Launch, count: int, call: Call, values: Values) -> Iterator[Launch]:
    between = _left_between(call, values, launch)
    pair = dict(list(launch.reads.items())[:2])
    for _ in range(count):
        yield replace(launch, reads=pair, writes=between)
        yield replace(launch, reads=between, writes=between)
        yield replace(launch, work="reduction", reads=between)
    if count > 1:
        yield replace(launch, reads=launch.writes)


def _left_between(call: Call, values: Values, launch: Launch) -> dict[int, int]:
    """A tensor as large as the largest that the call is given; of the call alone."""
    largest = max((held_bytes(info) for info in _tensors(call, values)), default=0)
    return {_BETWEEN - call.outputs[0]: largest}


def _row(call: Call, values: Values) -> int:
    """Bytes of what is reduced together; of a norm or a softmax, whose result is as large as its operand, a row of
    it."""
    (first, *_), out = _tensors(call, values) or [values[call.outputs[0]]], values[call.outputs[0]]
    name, width = name_of(call), itemsize(first.dtype)
    if prod(out.shape) < prod(first.shape):
        return width * (prod(first.shape) // max(1, prod(out.shape)))
    arguments = (*call.args[1:2], *call.kwargs.values())
    if name in ("layer_norm", "rms_norm"):
        shape = next((one for one in arguments if isinstance(one, tuple)), first.shape[-1:])
        return width * prod(part for part in shape if isinstance(part, int))
    if name in ("group_norm", "instance_norm", "batch_norm"):
        groups = next((one for one in arguments if isinstance(one, int)), 1) if name == "group_norm" else 0
        return width * (prod(first.shape[1:]) // max(1, groups) if groups else prod(first.shape[2:]))
    dim = next((one for one in arguments if isinstance(one, int)), -1)
    return width * first.shape[dim] if first.shape and -len(first.shape) <= dim < len(first.shape) else width


def _window(call: Call, rank: int) -> int:
    """Elements of a window of pooling."""
    size = call.args[1] if len(call.args) > 1 else call.kwargs.get("kernel_size")
    sizes = [part for part in _parts((size,)) if isinstance(part, int)]
    return prod(sizes) if len(sizes) > 1 else (sizes or [1])[0] ** rank


def _tensors(call: Call, values: Values) -> list[TensorInfo]:
    """Those of its arguments that have dimensions, in order; one that is given twice is there twice."""
    given = [part.value for part in _parts((*call.args, *call.kwargs.values())) if isinstance(part, Ref)]
    return [values[value] for value in given if values[value].shape]


def _product(call: Call, values: Values) -> Product:
    """Of two operands: what both share with the result are matrices, what the result lacks is summed."""
    out = values[call.outputs[0]].shape
    operand = [info.shape for info in _tensors(call, values)]
    name = name_of(call)
    if name in ("addmm", "baddbmm", "addbmm", "addmv"):
        operand = operand[1:] if len(operand) > 2 else operand
    if len(operand) < 2:
        operand = [*operand, *operand] if operand else [(1,), (1,)]
    left, right = operand[0], operand[1]
    if name == "einsum":  # of an equation that is not read
        return Product(1, prod(left[:-1]), max(1, prod(right) // max(1, left[-1])), left[-1])
    if name in ("outer", "ger"):
        return Product(1, prod(left), prod(right), 1)
    depth = left[-1]
    if name == "linear":
        return Product(1, prod(left[:-1]), right[0], depth)
    if len(right) <= 2:  # the batch of the left operand is rows
        columns = right[-1] if len(right) == 2 else 1
        return Product(1, max(1, prod(left[:-1])), columns, depth)
    rows = left[-2] if len(left) > 1 else 1
    return Product(max(1, prod(out) // max(1, rows * right[-1])), rows, right[-1], depth)


def _steps(call: Call, values: Values) -> list[Step] | None:
    equation = next((part for part in call.args if isinstance(part, str)), "")
    return contractions(equation, [values[value].shape for value in _given(call)])


def _given(call: Call) -> list[int]:
    """Its operands, each as often as it is one."""
    return [part.value for part in _parts(call.args) if isinstance(part, Ref)]


def _contracted(
    launch: Launch, steps: Sequence[Step], call: Call, values: Values, owners: Mapping[int, int]
) -> Iterator[Launch]:
    """One kernel a step; what a step leaves is read by the next."""
    given = _given(call)
    width = itemsize(values[call.outputs[0]].dtype)
    before = {owners.get(given[0], given[0]): held_bytes(values[given[0]])}
    for number, (step, value) in enumerate(zip(steps, given[1:], strict=True)):
        other = owners.get(value, value)
        reads = {**before, other: before.get(other, 0) + held_bytes(values[value])}
        last = number == len(steps) - 1
        left = _BETWEEN - call.outputs[0] - number * _APART
        writes = launch.writes if last else {left: width * step.elements}
        one = replace(launch, reads=reads, writes=writes)
        dims = len(values[call.outputs[0]].shape)
        yield one if step.product is None else replace(one, work="product", products=(step.product,), dims=dims)
        before = dict(writes)


def _convolution(call: Call, values: Values) -> tuple[Product, ...]:
    x, weight, *_ = _tensors(call, values)
    out = values[call.outputs[0]].shape
    groups = call.args[6] if len(call.args) > 6 and isinstance(call.args[6], int) else call.kwargs.get("groups", 1)
    groups = groups if isinstance(groups, int) else 1
    if "transpose" in name_of(call):  # its weight has the operand's channels first; each element goes to all taps
        places = prod(x.shape) // weight.shape[0]
        return (Product(groups, places, prod(weight.shape[1:]), weight.shape[0] // groups),)
    spatial = prod(out) // weight.shape[0]
    return (Product(groups, spatial, weight.shape[0] // groups, prod(weight.shape[1:])),)


def _attention(call: Call, values: Values) -> tuple[Product, ...]:
    query, key, value, *_ = _tensors(call, values)
    matrices, rows, depth = prod(query.shape[:-2]), query.shape[-2], query.shape[-1]
    keys, columns = key.shape[-2], value.shape[-1]
    return Product(matrices, rows, keys, depth), Product(matrices, rows, columns, keys)
