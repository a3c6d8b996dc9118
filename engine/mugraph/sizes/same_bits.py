"""Are the results of a kernel, bit for bit, those of PyTorch?

Three things have to say so. Every call of the user's code is one operator, in one type (units/rounding.py). The text
of the kernel computes by the same operations, each rounded where PyTorch rounds it (triton_text/bits.py). And in the
float test, where it has run, no bit was another. One that differs there takes the word back, and says so.
"""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource
from mugraph.ir.region import SearchUnit
from mugraph.triton_text.check import check_bits
from mugraph.units.rounding import NotKnown, rounding_type
from mugraph.verification.float_results import FloatResult
from mugraph.verification.verdict import SameBits

_SEEN = "its text rounds as PyTorch does, but"
"""How it begins why a float test took the word back."""


def same_bits(unit: SearchUnit, source: KernelSource, tested: FloatResult | None) -> SameBits:
    """tested: the kernel's float test; None for that of an earlier run, in which no bit was another"""
    try:
        dtype = rounding_type(unit)
    except NotKnown as error:
        return SameBits(False, str(error))
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    launcher = f"launch_{source.name}"
    why, apart = check_bits(unit.program, source.standalone(), launcher, inputs, outputs, dtype)
    if why is not None:
        return SameBits(False, why)
    if tested is None:
        return SameBits(True, "", apart)
    if not tested.scenarios:
        return SameBits(False, "no float test has looked at it")
    other = next((one for one in tested.scenarios if not (one.same_bits or (apart and one.same_but_zeros))), None)
    if other is not None:
        return SameBits(False, f"{_SEEN} on {other.name} inputs a bit was another")
    return SameBits(True, "", apart)


def same_bits_again(unit: SearchUnit, source: KernelSource, found: SameBits | None) -> SameBits | None:
    """found: of a kernel with this text, for calls of which the unit's program may have come as well: where they round
    says nothing of where the unit's own do. None stays None"""
    if found is None:
        return None
    own = same_bits(unit, source, None)
    if found.holds or not own.holds or found.why.startswith(_SEEN):
        return found if own.holds and not found.holds else own
    return SameBits(False, "the kernel was found for other calls that have the same program, and tested beside those")
