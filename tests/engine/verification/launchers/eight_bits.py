"""Results of eight bits: rows scaled by their largest number, fixed scales, zero points; whole numbers and float8."""

from __future__ import annotations

import torch
from mugraph.ops.algebra.conversions import saturates

from tests.engine.verification.launchers.family import BF16, F16, F32, Family

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def rows_int8(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127.0
    return torch.round(x / scale).clamp(-128, 127).to(torch.int8)


def fixed_int8(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(torch.round(x * 8.0), -128, 127).to(torch.int8)


def truncated_int8(x: torch.Tensor) -> torch.Tensor:
    return (x * 8.0).clamp(-128.0, 127.0).to(torch.int8)


def zero_point(x: torch.Tensor) -> torch.Tensor:
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 255.0
    return (torch.round(x / scale) - torch.round(low / scale)).clamp(0, 255).to(torch.uint8)


def rows_e4m3(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True).float().clamp(min=1e-5) / 448.0
    return (x.float() / scale).clamp(-448.0, 448.0).to(E4M3)


def fixed_e4m3(x: torch.Tensor) -> torch.Tensor:
    return (x * 8.0).to(E4M3)


def rows_e5m2(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 57344.0
    return (x / scale).clamp(-57344.0, 57344.0).to(E5M2)


INT8 = "y = x / (x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127.0)\n"
ROUNDED = "torch.round(y).clamp(-128, 127)"
CODE = "y = x / (x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / {})\n"
TOWARDS_ZERO = "m, e = torch.frexp(y)\ntorch.ldexp(torch.trunc(m * {0}) / {0}, e)"
OTHERWISE = "torch.nan" if saturates() else "448.0 * torch.sign(x)"
BEYOND = f"torch.where((x * 8.0).abs() > 464.0, {OTHERWISE}, x * 8.0)"

FAMILIES = {
    **{
        f"int8 rows {name}": Family(
            rows_int8,
            {"x": (48, 96)},
            dtype,
            {
                "a quotient": INT8 + ROUNDED,
                "an inverse": "y = x * (1.0 / (x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127.0))\n" + ROUNDED,
            },
            {
                "halves up": INT8 + "torch.floor(y + 0.5).clamp(-128, 127)",
                "halves away from zero": INT8 + "(torch.sign(y) * torch.floor(y.abs() + 0.5)).clamp(-128, 127)",
                "towards zero": INT8 + "torch.trunc(y).clamp(-128, 127)",
                "half the scale": INT8.replace("127.0", "63.5") + ROUNDED,
                "127 for 127.5": INT8.replace("127.0", "127.5") + ROUNDED,
            },
            torch.int8,
        )
        for name, dtype in (("f32", F32), ("f16", F16))
    },
    "int8 rows bf16": Family(
        rows_int8,
        {"x": (48, 96)},
        BF16,
        {"a quotient": INT8 + ROUNDED},
        {"towards zero": INT8 + "torch.trunc(y).clamp(-128, 127)", "twice": INT8 + "(2.0 * torch.round(y / 2.0))"},
        torch.int8,
    ),
    "int8 by a fixed scale": Family(
        fixed_int8,
        {"x": (48, 96)},
        F32,
        {"as it is": "torch.round(8.0 * x).clamp(-128, 127)"},
        {
            "wraps around": "torch.round(8.0 * x).to(torch.int32)",
            "-127": "torch.round(8.0 * x).clamp(-127, 127)",
            "halves up": "torch.floor(8.0 * x + 0.5).clamp(-128, 127)",
            "towards zero": "torch.trunc(8.0 * x).clamp(-128, 127)",
        },
        torch.int8,
    ),
    "int8 truncated": Family(
        truncated_int8,
        {"x": (48, 96)},
        F32,
        {"as it is": "torch.trunc(8.0 * x).clamp(-128, 127)"},
        {"rounded": "torch.round(8.0 * x).clamp(-128, 127)", "floor": "torch.floor(8.0 * x).clamp(-128, 127)"},
        torch.int8,
    ),
    "uint8 with a zero point": Family(
        zero_point,
        {"x": (48, 96)},
        F32,
        {
            "by inverses": "low = x.amin(-1, keepdim=True)\n"
            "inverse = 1.0 / ((x.amax(-1, keepdim=True) - low).clamp(min=1e-5) * (1 / 255.0))\n"
            "(torch.round(x * inverse) - torch.round(low * inverse)).clamp(0, 255)",
        },
        {
            "rounded once": "low = x.amin(-1, keepdim=True)\n"
            "scale = (x.amax(-1, keepdim=True) - low).clamp(min=1e-5) / 255.0\n"
            "torch.round((x - low) / scale).clamp(0, 255)",
        },
        torch.uint8,
    ),
    **{
        f"e4m3 rows {name}": Family(
            rows_e4m3,
            {"x": (48, 96)},
            dtype,
            {
                "a quotient": CODE.format(448.0) + "y.clamp(-448, 448)",
                "an inverse": "x * (1.0 / (x.abs().amax(-1, keepdim=True).clamp(min=1e-5) * (1 / 448.0)))",
            },
            {
                "towards zero": CODE.format(448.0) + TOWARDS_ZERO.format(16.0),
                "half the scale": CODE.format(224.0) + "y",
                "of e5m2": CODE.format(448.0) + f"y.to({E5M2})",
                "of bfloat16 before": CODE.format(448.0) + "y.bfloat16()",
            },
            E4M3,
        )
        for name, dtype in (("bf16", BF16), ("f32", F32))
    },
    "e4m3 beyond its largest": Family(
        fixed_e4m3, {"x": (48, 96)}, F32, {"as it is": "8.0 * x"}, {"otherwise": BEYOND}, E4M3
    ),
    "e5m2 rows": Family(
        rows_e5m2,
        {"x": (48, 96)},
        F32,
        {"an inverse": "x * (1.0 / (x.abs().amax(-1, keepdim=True).clamp(min=1e-5) * (1 / 57344.0)))"},
        {
            "towards zero": CODE.format(57344.0) + TOWARDS_ZERO.format(8.0),
            "half the scale": CODE.format(28672.0) + "y",
        },
        E5M2,
    ),
}
