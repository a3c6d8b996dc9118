"""What the plans and kernels of a region are called, from the function they stand in."""

from __future__ import annotations

import re

from mugraph.ir.names import identifier

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z]{3})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Between the words of a class name; short mixed ones ("LoRA", "MoE", "SwiGLU") are one word."""


def plan_name(function: str) -> str:
    """ "RMSNormLinear.forward" -> "rms_norm_linear", "LoRALinear.merge" -> "lora_linear_merge"."""
    name = function.removesuffix(".forward").replace(".<locals>", "")
    return identifier(_WORDS.sub("_", name)).lower()


def kernel_name(plan: str, number: int | None) -> str:
    """Of a plan "rms_norm_linear", "rms_norm_linear_fused"; "rms_norm_linear_2" for one of several."""
    return f"{plan}_{'fused' if number is None else number}"
