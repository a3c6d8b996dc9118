"""Programs, and kernels for them in plain PyTorch: right ones that add up in other orders and forms, and wrong ones; a
file for each family."""

from __future__ import annotations

from collections.abc import Mapping

from tests.engine.verification.launchers import (
    attention,
    centred,
    eight_bits,
    gated,
    gelu,
    layer_norm,
    linear,
    long_sums,
    maxima,
    rms_norm,
    softmax,
)
from tests.engine.verification.launchers.family import Family

FAMILIES: Mapping[str, Family] = {
    **linear.FAMILIES,
    **centred.FAMILIES,
    **rms_norm.FAMILIES,
    **layer_norm.FAMILIES,
    **maxima.FAMILIES,
    **softmax.FAMILIES,
    **attention.FAMILIES,
    **gated.FAMILIES,
    **gelu.FAMILIES,
    **long_sums.FAMILIES,
    **eight_bits.FAMILIES,
}
