"""The kernels that eager PyTorch launches for recorded calls: one for a layer norm, a softmax, an attention; none for a
view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from mugraph.baseline.arguments import given_values
from mugraph.baseline.contractions import Step
from mugraph.baseline.filters import filtered, is_filter
from mugraph.baseline.launch import Launch, Values, name_of
from mugraph.baseline.losses import BETWEEN, LOSSES, SUMS_OF_DISTANCES, distances, loss
from mugraph.baseline.memory import held_bytes, nearest, views_of
from mugraph.baseline.parts import GATHERS, WRITTEN_PARTS, gathered, written
from mugraph.baseline.products import attention_of, product_of, steps_of, tf32_of
from mugraph.baseline.rows import row_bytes, row_launch, window_of
from mugraph.ir.calls import Call, is_inplace, operands
from mugraph.ir.dtypes import itemsize

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
_PASSES = {
    "normalize": 3, "logsumexp": 4, "cosine_similarity": 6, "group_norm": 2, "instance_norm": 2, "cross_entropy": 2,
    "std": 2,
}  # fmt: skip
"""Of calls that run as several kernels: a reduction, then element by element."""
_POOLS = ("avg_pool", "max_pool")
_APART = 1 << 20
"""More than a region has values: what the steps of one call leave have each a number of its own."""


def launches(calls: Sequence[Call], values: Values) -> tuple[Launch, ...]:
    """In the order they run."""
    owners: dict[int, int] = {}
    found: list[Launch] = []
    for call in calls:
        viewed = views_of(call, values, owners)
        owners.update(viewed)
        found += _of(name_of(call), call, values, owners) if not viewed else []
    return tuple(found)


def _of(name: str, call: Call, values: Values, owners: Mapping[int, int]) -> Iterator[Launch]:
    reads: dict[int, int] = {}
    for value in operands(call):
        reads[owners.get(value, value)] = reads.get(owners.get(value, value), 0) + held_bytes(values[value])
    writes = {value: held_bytes(values[value]) for value in call.outputs}
    dtype = values[operands(call)[0]].dtype if reads else values[call.outputs[0]].dtype
    elements = max((prod(values[value].shape) for value in (*operands(call), *call.outputs)), default=0)
    functions = elements if name in _FUNCTIONS else 0
    launch = Launch("elementwise", reads, writes, dtype=dtype, functions=functions)
    if name == "contiguous" and nearest(values[operands(call)[0]]) != nearest(values[call.outputs[0]]):
        launch = replace(launch, scattered=elements)
    if name in GATHERS:
        launch = replace(launch, reads=gathered(call, values, reads, owners))
    if name in WRITTEN_PARTS and is_inplace(call):
        yield replace(launch, **written(call, values, owners))
        return
    if name == "scaled_dot_product_attention":
        causal = call.kwargs.get("is_causal") is True or True in call.args[5:6]
        for value in operands(call)[3:]:
            if values[value].dtype == "bool":
                for size in mask_bytes(held_bytes(values[value]), dtype):
                    yield Launch("elementwise", {}, {BETWEEN - call.outputs[0]: size}, dtype=dtype)
        yield replace(launch, work="attention", products=attention_of(call, values), is_causal=causal)
    elif is_filter(name):
        yield from filtered(launch, call, values)
    elif name.removesuffix("_with_indices")[:-2] in _POOLS:
        windows = prod(values[call.outputs[0]].shape)
        yield replace(launch, work="pooling", windows=windows, taps=windows * window_of(call, int(name[8])))
    elif name in LOSSES:
        yield from loss(launch, LOSSES[name], call, values)
    elif name in SUMS_OF_DISTANCES:
        yield from distances(launch, SUMS_OF_DISTANCES[name], call, values)
    elif name == "einsum" and (steps := steps_of(call, values)) is not None:
        yield from _contracted(launch, steps, call, values, owners)
    elif name in _PRODUCTS:
        dims, tf32 = len(values[call.outputs[0]].shape), tf32_of(call)
        yield replace(launch, work="product", products=(product_of(call, values),), dims=dims, tf32=tf32)
    else:
        if name in _REDUCTIONS or name in _PASSES:
            found = row_launch(name, reads, writes, row_bytes(call, values))
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


def _contracted(
    launch: Launch, steps: Sequence[Step], call: Call, values: Values, owners: Mapping[int, int]
) -> Iterator[Launch]:
    """One kernel a step; what a step leaves is read by the next."""
    given = given_values(call)
    width = itemsize(values[call.outputs[0]].dtype)
    before = {owners.get(given[0], given[0]): held_bytes(values[given[0]])}
    for number, (step, value) in enumerate(zip(steps, given[1:], strict=True)):
        other = owners.get(value, value)
        reads = {**before, other: before.get(other, 0) + held_bytes(values[value])}
        last = number == len(steps) - 1
        left = BETWEEN - call.outputs[0] - number * _APART
        writes = launch.writes if last else {left: width * step.elements}
        one = replace(launch, reads=reads, writes=writes)
        dims = len(values[call.outputs[0]].shape)
        yield (
            one
            if step.product is None
            else replace(one, work="product", products=(step.product,), dims=dims, tf32=tf32_of(call))
        )
        before = dict(writes)
