"""What PyTorch calls the settings of TF32, and the operators that go by them."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.ops import Tf32

OPERATIONS: Mapping[Tf32, str] = {"cudnn": "conv", "cublas": "matmul"}
"""By the setting: what `fp32_precision` calls what it is about."""
MULTIPLIED: Mapping[Tf32, Mapping[str, tuple[int, int]]] = {
    "cudnn": {"convolution": (0, 1)},
    "cublas": {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "addbmm": (1, 2)},
}
"""By the setting: operators of `torch.ops.aten`, and which of their operands they multiply."""
