"""Whether kernels give what PyTorch's code gives on the same inputs. Child process only.

Both are compared with PyTorch's code in double precision. Each rounds in its own places, and in a deep region PyTorch's
own error is more than a few units in the last place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType

import torch

from mugraph.tune import timing
from mugraph.tune.apart import Apart
from mugraph.tune.device_errors import is_fatal, one_line
from mugraph.tune.messages import Agreed, Failure, InputSpec
from mugraph.verification.near import comparable

_log = logging.getLogger("mugraph.tune")

Function = Callable[..., object]
_SPARE = 2
"""Times as much memory as is known to be needed has to be free."""
MORE_AT_MOST = 3
"""How much larger the largest error may be than the code's own."""
MORE_ON_THE_WHOLE = 1.3
"""The same in the root mean square, which is nearly the same for another
order of sums. Three products rounded to tf32 are further off where the code rounds one of them."""
_ENOUGH = 0.5
"""How many of the elements have to be numbers: of nothing but NaN every program is right."""
_ALONE = 64 * torch.finfo(torch.float32).eps
"""Of the largest number: what rows may differ by when they are computed without the others, as a running sum of tens of
thousands does, whose order PyTorch chooses by the number of rows. In types of 16 bits, a unit in the last place."""
_BOTH_ROUND = 2
"""How much more may be wrong where the measure is PyTorch's own result, whose error is then not known."""
_TELLS = 1e-2
"""Where more may be wrong than this, PyTorch's own rounding decides what comes out."""


def agree(
    mine: Function,
    reference: Function,
    specs: Sequence[InputSpec],
    generator: torch.Generator,
    *,
    jumps: bool = False,
) -> Agreed | Failure:
    """Of the results, the one that is furthest off for what it may be. jumps: as of Subject

    On inputs without a sign as well: the rounding of a weight is shared by all that is multiplied with it, and evens
    out in a mean where those have both signs. cuDNN rounds weights to tf32 in one order of memory, and computes in
    float32 in the other.
    """
    inputs = timing.make_inputs(specs, generator)
    each = _compared(mine, reference, inputs, jumps)
    if isinstance(each, Failure) and each is not _TOO_FEW:
        return each
    for tensor, spec in zip(inputs, specs, strict=True):
        if tensor.is_floating_point() and spec.triangle is None:
            flat = tensor.as_strided((timing.storage_elements(spec),), (1,), 0)  # an element may lie at several places
            if tensor.dtype.itemsize == 1:  # float8: CUDA has no absolute value of it
                flat.view(torch.uint8).bitwise_and_(0x7F)
            else:
                flat.abs_()
    without_sign = _compared(mine, reference, inputs, jumps)
    if isinstance(each, Failure):
        if isinstance(without_sign, Failure):
            return each
        each = without_sign
    elif not isinstance(without_sign, Failure):
        each += [one for one in without_sign if one.limit < _TELLS]
    return max(each, key=lambda agreed: agreed.error / agreed.limit)


def agree_on(
    mine: Function, reference: Function, inputs: Sequence[torch.Tensor], *, jumps: bool = False
) -> Agreed | Failure:
    """As `agree`, on these inputs."""
    each = _compared(mine, reference, inputs, jumps)
    return each if isinstance(each, Failure) else max(each, key=lambda agreed: agreed.error / agreed.limit)


def on_copies(function: Function, writes: Sequence[int]) -> Function:
    """A function that writes to copies of its inputs at these positions, and returns them behind its results: the next
    one finds the inputs as they were."""
    if not writes:
        return function

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        own = [*inputs]
        for at in writes:
            like = inputs[at]
            made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
            own[at] = made.copy_(like)
        results = timing.tensors_of(function(*own))
        return (*results, *(own[at] for at in writes))

    return run


_TOO_FEW = Failure("on random inputs there are too few numbers to compare")


def _compared(
    mine: Function, reference: Function, inputs: Sequence[torch.Tensor], jumps: bool
) -> list[Agreed] | Failure:
    """Of each result."""
    others: list[tuple[Apart, Apart]] = []
    with torch.no_grad():
        found = timing.tensors_of(mine(*inputs))
        eager = timing.tensors_of(reference(*inputs))
        if len(eager) != len(found):
            return Failure(f"{len(found)} results where the original gives {len(eager)}")
        if any(one.shape != other.shape for one, other in zip(found, eager, strict=True)):
            return Failure("the results have other shapes than the original's")
        ours, theirs = ([timing.Errors() for _ in eager] for _ in range(2))
        others = [(Apart(one.dtype), Apart(one.dtype)) for one in eager]
        who_round = 1
        for rows, exact, is_double in _exact(reference, inputs, eager):
            who_round = who_round if is_double else _BOTH_ROUND
            for at, truth in enumerate(map(comparable, exact)):
                one, other = comparable(found[at][rows]), comparable(eager[at][rows])
                ours[at].add(one, truth)
                theirs[at].add(other, truth)
                if jumps:
                    others[at][0].add(one, truth)
                    others[at][1].add(other, truth)
    if jumps:
        shares = [(one.share, one.allowed(other)) for one, other in others]
        return [Agreed(share <= limit, share, limit) for share, limit in shares]
    each: list[Agreed] = []
    for one, other, result in zip(ours, theirs, eager, strict=True):
        if one.share_of_numbers < _ENOUGH:
            return _TOO_FEW
        # A few units in the last place of the outputs' own type, against the largest value of the output.
        units = 8 * torch.finfo(result.dtype).eps if result.dtype.is_floating_point else 0.0
        most, on_the_whole = who_round * max(units, 1e-5), who_round * max(units / 2, 5e-7)
        limits = MORE_AT_MOST * other.largest + most, MORE_ON_THE_WHOLE * other.mean + on_the_whole
        pairs = zip((one.largest, one.mean), limits, strict=True)
        each += [Agreed(off <= limit, off, limit) for off, limit in pairs]
    return each


Rows = slice | EllipsisType
Truth = tuple[Rows, Sequence[torch.Tensor], bool]
"""Rows of the results, what they are, and whether that was computed in double precision."""


def _exact(reference: Function, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]) -> Iterator[Truth]:
    """In double precision, some rows at a time where all of it takes too much memory; PyTorch's own results where it
    knows no doubles, or where rows cannot be computed without the others."""
    needed = _SPARE * sum(8 * tensor.numel() for tensor in (*inputs, *eager, *eager))
    free = timing.free_bytes()
    whole = _in_double(reference, inputs) if needed <= free else None
    if whole is not None:
        yield ..., whole, True
        return
    every: Sequence[slice] = ()
    if needed > free:
        every = _rows(reference, inputs, eager, 2 * needed // max(1, free) + 1)
        how = (
            f"in {len(every)} parts" if every else "in its own precision, as rows of it are not all that they depend on"
        )
        _log.info("double precision takes %d MiB, and %d are free: compared %s", needed >> 20, free >> 20, how)
    for rows in every:
        is_alone = _are_enough(reference, inputs, eager, rows)
        exact = _in_double(reference, _of_rows(inputs, eager, rows)) if is_alone else None
        yield rows, exact if exact is not None else [one[rows] for one in eager], exact is not None
    if not every:
        yield ..., eager, False


def _in_double(reference: Function, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
    try:
        return timing.tensors_of(reference(*(one.double() if one.is_floating_point() else one for one in inputs)))
    except RuntimeError as error:
        if is_fatal(error):
            raise
        _log.info("the original is not computed in double precision: %s", one_line(error))
        return None


def _rows(
    reference: Function, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], parts: int
) -> Sequence[slice]:
    """So many parts along the first dimension of the results, or more; none where it is seen at the first and the last
    that they need the others."""
    sizes = {one.shape[0] if one.dim() else 0 for one in eager}
    if len(sizes) != 1 or (size := sizes.pop()) < 2:
        return []
    step = max(1, size // parts)
    every = [slice(first, min(first + step, size)) for first in range(0, size, step)]
    return every if all(_are_enough(reference, inputs, eager, rows) for rows in (every[-1], every[0])) else []


def _are_enough(
    reference: Function, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], rows: slice
) -> bool:
    """Whether these rows of the inputs give these rows of the results, in the code's own precision."""
    try:
        found = timing.tensors_of(reference(*_of_rows(inputs, eager, rows)))
    except Exception as error:  # of what is written for all of them
        if is_fatal(error):
            raise
        return False
    pairs = [(one, other[rows]) for one, other in zip(found, eager, strict=True)]
    most = [max(_ALONE, torch.finfo(one.dtype).eps) if one.dtype.is_floating_point else 0.0 for one in found]
    return all(timing.relative_errors(*pair)[0] <= least for pair, least in zip(pairs, most, strict=True))


def _of_rows(inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], rows: slice) -> list[torch.Tensor]:
    """Of all inputs that have as many rows as the results."""
    size = eager[0].shape[0]
    return [one[rows] if one.dim() and one.shape[0] == size else one for one in inputs]
