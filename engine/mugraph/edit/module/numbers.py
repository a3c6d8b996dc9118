"""The part of the shared runtime that makes tensors of numbers, which kernels are given like other tensors."""

from __future__ import annotations

NUMBERS = '''\
# Numbers that vary from call to call
import math as _math

_LARGEST, _LEAST = 3.4028234663852886e38, 1.1754943508222875e-38
_LARGEST_NARROW, _LEAST_NARROW = 65504.0, 2.0**-24
_MOST_NUMBERS = 512
_made_numbers: dict[tuple[float, int, int], torch.Tensor] = {}
"""By the number, the device, and the stream on which it was made."""


def _number(value: float, like: torch.Tensor, narrow: bool = False) -> torch.Tensor:
    """A number for kernels on a tensor's device, as PyTorch takes it there: in float32. One that was made before is
    made once. narrow: it is computed with beside numbers of 16 bits that have a small range. Raises ValueError on what
    is no plain number of the range in which all of them were tested, or is none."""
    if type(value) is not float and type(value) is not int:
        raise ValueError("no plain number")
    least, most = (_LEAST_NARROW, _LARGEST_NARROW) if narrow else (_LEAST, _LARGEST)
    if value != 0 and not least <= abs(value) <= most:
        raise ValueError("outside of the range")
    if _dynamo() or value == 0 or like.device.type != "cuda" or _capturing():
        return torch.full((), value, dtype=torch.float32, device=like.device)
    at = like.device.index
    stream = _current_stream(at)
    if stream == _OF_THREAD:
        return torch.full((), value, dtype=torch.float32, device=like.device)
    made = _made_numbers.get((value, at, stream))
    if made is None:
        if len(_made_numbers) >= _MOST_NUMBERS:
            _made_numbers.clear()
        made = _made_numbers[value, at, stream] = torch.full((), value, dtype=torch.float32, device=like.device)
    return made
'''
