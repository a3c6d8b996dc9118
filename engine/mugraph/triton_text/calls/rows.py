"""Softmax and norms of the rows along the last dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mugraph.triton_text.calls.call import Box, Call, Reading
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import is_sequence, listed
from mugraph.triton_text.tensors import HostTensor

Taken = Callable[[Call, Real], Real]
"""A call and rows of its first operand -> rows of its result."""
_LEAST = 2.0**-23
"""What is added to a mean square where nothing is said (types of 16 bits and float32)."""


def _total(call: Call, rows: Real) -> Real:
    return call.reals.sum(rows, rows.p.ndim - 1, rows.p.shape[-1])


def _mean(call: Call, rows: Real) -> Real:
    return call.reals.div(_total(call, rows), _number(call, rows, float(rows.p.shape[-1])))


def _number(call: Call, like: Real, value: float) -> Real:
    return call.reals.constant(value, like.p.ndim - 1)


def _softmax(call: Call, rows: Real) -> Real:
    exps = call.reals.exp(rows)
    return call.reals.div(exps, _total(call, exps))


def _log_softmax(call: Call, rows: Real) -> Real:
    return call.reals.add(rows, call.reals.negative(call.reals.unary("log", _total(call, call.reals.exp(rows)))))


def _rooted(call: Call, rows: Real, spread: Real, default: float) -> Real:
    """As _over_root, without weights."""
    reals, given = call.reals, call.arguments.get("eps")
    eps = default if given is None else float(given)
    return reals.div(rows, reals.sqrt(reals.add(_mean(call, spread), _number(call, rows, eps))))


def _over_root(call: Call, rows: Real, spread: Real, default: float) -> Real:
    """Rows over the root of the means of what is spread, with something added to these, and the call's weights."""
    reals, rank = call.reals, rows.p.ndim
    found = _rooted(call, rows, spread, default)
    for vector, then in zip(call.operands[1:], (reals.mul, reals.add), strict=False):
        own = call.part(vector, [slice(0, n) for n in vector.shape])
        found = then(found, own.each(lambda x: x.reshape((1,) * (rank - x.ndim) + x.shape)))
    return found


def _rms_norm(call: Call, rows: Real) -> Real:
    return _over_root(call, rows, call.reals.mul(rows, rows), _LEAST)


def _layer_norm(call: Call, rows: Real) -> Real:
    centred = call.reals.add(rows, call.reals.negative(_mean(call, rows)))
    return _over_root(call, centred, call.reals.mul(centred, centred), 1e-5)


def _group_norm(call: Call, box: Box) -> Real:
    """All of the groups that the channels are of, and of these what is asked for."""
    x, *vectors = call.operands
    reals, (batch, channels, *places) = call.reals, box
    each = x.shape[1] // call.arguments["num_groups"]
    first, last = channels.start // each, (channels.stop - 1) // each + 1
    part = call.part(x, (batch, slice(first * each, last * each), *(slice(0, size) for size in x.shape[2:])))
    whole = part.p.shape
    rows = part.each(lambda array: array.reshape(whole[0], last - first, -1))
    centred = reals.add(rows, reals.negative(_mean(call, rows)))
    found = _rooted(call, centred, reals.mul(centred, centred), 1e-5)
    asked = (slice(None), slice(channels.start - first * each, channels.stop - first * each), *places)
    found = found.each(lambda array: array.reshape(whole)[asked])
    for vector, then in zip(vectors, (reals.mul, reals.add), strict=False):
        own = call.part(vector, (channels,))
        found = then(found, own.each(lambda array: array.reshape(1, -1, *(1,) * len(places))))
    return found


def _of_rows(taken: Taken) -> Callable[[Call, Box], Real]:
    def compute(call: Call, box: Box) -> Real:
        (x, *_), along = call.operands, slice(0, call.operands[0].shape[-1])
        found = taken(call, call.part(x, (*box[:-1], along)))
        return found.each(lambda array: array[..., box[-1]])

    return compute


def _shape(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    shape = operands[0].shape
    if not shape or arguments.get("dim") not in (-1, len(shape) - 1) or arguments.get("dtype") is not None:
        raise Unreadable("a softmax along another dimension than the last, or in another type, is not read")
    return shape


def _shape_of_norm(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    (x, *vectors), over = operands, arguments.get("normalized_shape")
    over = listed(over) if is_sequence(over) else (over,)
    if len(over) != 1:
        raise Unreadable("a norm over several dimensions is not read")
    if over != x.shape[-1:] or any(vector.shape != over for vector in vectors):
        raise Wrong("type", f"a norm of {list(over)} of a tensor of shape {list(x.shape)}")
    return x.shape


def _shape_of_groups(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    (x, *vectors), groups = operands, arguments.get("num_groups")
    if len(x.shape) < 2 or not isinstance(groups, int) or groups < 1 or x.shape[1] % groups:
        raise Wrong("type", f"{groups} groups of channels of a tensor of shape {list(x.shape)}")
    if any(vector.shape != x.shape[1:2] for vector in vectors):
        raise Wrong("type", f"a norm of {x.shape[1]} channels with as many weights as another one")
    return x.shape


def _norm(taken: Taken, *operands: str) -> Reading:
    parameters = ("input", "normalized_shape", *operands, "eps")
    return Reading(parameters, 0, _shape_of_norm, _of_rows(taken), operands=("input", *operands))


READINGS: Mapping[str, Reading] = {
    "torch.softmax": Reading(("input", "dim", "dtype"), 1, _shape, _of_rows(_softmax)),
    "torch.log_softmax": Reading(("input", "dim", "dtype"), 1, _shape, _of_rows(_log_softmax)),
    "torch.nn.functional.rms_norm": _norm(_rms_norm, "weight"),
    "torch.nn.functional.layer_norm": _norm(_layer_norm, "weight", "bias"),
    "torch.nn.functional.group_norm": Reading(
        ("input", "num_groups", "weight", "bias", "eps"),
        0,
        _shape_of_groups,
        _group_norm,
        operands=("input", "weight", "bias"),
    ),
}
