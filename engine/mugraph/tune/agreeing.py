"""Whether kernels give what PyTorch's code gives on the same inputs. Child process only.

Both are compared with PyTorch's code in double precision. Each rounds in its own places, and in a deep region PyTorch's
own error is more than a few units in the last place.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

import torch

from mugraph.tune import timing
from mugraph.tune.device_errors import is_fatal, one_line
from mugraph.tune.messages import Agreed, Failure, InputSpec

_log = logging.getLogger("mugraph.tune")

Function = Callable[..., object]
_SPARE = 2
"""Times as much memory as is known to be needed has to be free."""
_ON_THE_WHOLE = 1.3
"""How much larger the errors may be than the code's own in the root mean square, which is nearly the same for another
order of sums. Three products rounded to tf32 are further off where the code rounds one of them."""
_ENOUGH = 0.5
"""How many of the elements have to be numbers: of nothing but NaN every program is right."""
_TELLS = 1e-2
"""Where more may be wrong than this, PyTorch's own rounding decides what comes out."""


def agree(
    mine: Function, reference: Function, specs: Sequence[InputSpec], generator: torch.Generator
) -> Agreed | Failure:
    """Of the results, the one that is furthest off for what it may be.

    On inputs without a sign as well: the rounding of a weight is shared by all that is multiplied with it, and evens
    out in a mean where those have both signs. cuDNN rounds weights to tf32 in one order of memory, and computes in
    float32 in the other.
    """
    inputs = timing.make_inputs(specs, generator)
    each = _compared(mine, reference, inputs)
    if isinstance(each, Failure) and each is not _TOO_FEW:
        return each
    for tensor, spec in zip(inputs, specs, strict=True):
        if tensor.is_floating_point() and spec.triangle is None:
            flat = tensor.as_strided((timing.storage_elements(spec),), (1,))  # an element may lie at several places
            if tensor.dtype.itemsize == 1:  # float8: CUDA has no absolute value of it
                flat.view(torch.uint8).bitwise_and_(0x7F)
            else:
                flat.abs_()
    without_sign = _compared(mine, reference, inputs)
    if isinstance(each, Failure):
        if isinstance(without_sign, Failure):
            return each
        each = without_sign
    elif not isinstance(without_sign, Failure):
        each += [one for one in without_sign if one.limit < _TELLS]
    return max(each, key=lambda agreed: agreed.error / agreed.limit)


def agree_on(mine: Function, reference: Function, inputs: Sequence[torch.Tensor]) -> Agreed | Failure:
    """As `agree`, on these inputs."""
    each = _compared(mine, reference, inputs)
    return each if isinstance(each, Failure) else max(each, key=lambda agreed: agreed.error / agreed.limit)


_TOO_FEW = Failure("on random inputs there are too few numbers to compare")


def _compared(mine: Function, reference: Function, inputs: Sequence[torch.Tensor]) -> list[Agreed] | Failure:
    """Of each result."""
    with torch.no_grad():
        found = timing.tensors_of(mine(*inputs))
        eager = timing.tensors_of(reference(*inputs))
        exact = _exact(reference, inputs, eager)
    if len(eager) != len(found):
        return Failure(f"{len(found)} results where the original gives {len(eager)}")
    each: list[Agreed] = []
    for one, other, truth in zip(found, eager, exact, strict=True):
        if timing.share_of_numbers(truth) < _ENOUGH:
            return _TOO_FEW
        (error, mean), (own, own_mean) = (timing.relative_errors(result, truth) for result in (one, other))
        # A few units in the last place of the outputs' own type, against the largest value of the output.
        units = 8 * torch.finfo(other.dtype).eps if other.dtype.is_floating_point else 0.0
        limits = 3 * own + max(units, 1e-5), _ON_THE_WHOLE * own_mean + max(units / 2, 5e-7)
        each += [Agreed(off <= limit, off, limit) for off, limit in zip((error, mean), limits, strict=True)]
    return each


def _exact(
    reference: Function, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """In double precision; PyTorch's own results where it knows no doubles, or where they take too much memory."""
    needed = sum(8 * tensor.numel() for tensor in (*inputs, *eager, *eager))
    free = _free_bytes()
    if needed * _SPARE > free:
        _log.info("double precision takes %d MiB, and %d MiB are free", needed >> 20, free >> 20)
        return eager
    try:
        return timing.tensors_of(reference(*(one.double() if one.is_floating_point() else one for one in inputs)))
    except RuntimeError as error:
        if is_fatal(error):
            raise
        _log.info("the original is compared in its own precision, not in double precision: %s", one_line(error))
        return eager


def _free_bytes() -> int:
    """That other processes do not have."""
    if not torch.cuda.is_available():
        return sys.maxsize
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]
