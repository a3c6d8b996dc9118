"""Programs at many sizes, measured on a GPU: what the rates of PyTorch's kernels can be fitted to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mugraph.ir.dtypes import DRAWN
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Region
from mugraph.research.fitting import ESTIMATED
from mugraph.research.points import Point, Points, read, traced, write
from mugraph.solve.code import code_of
from mugraph.tune.against import peer_subjects
from mugraph.tune.device import Device, detect
from mugraph.tune.measure import METHOD, Measurer
from mugraph.tune.messages import InputSpec
from mugraph.tune.process import Unavailable
from mugraph.tune.statistics import Summary

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
_ROWS = (16, 512, 8192)
_WIDTHS = (1024, 4096)
_ROW_PROGRAMS = {
    "layer norm": ("x, g, b", "F.layer_norm(x, x.shape[-1:], g, b)"),
    "RMS norm": ("x, g", "F.rms_norm(x, x.shape[-1:], g, 1e-6)"),
    "RMS norm by hand": ("x, g", "x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * g"),
    "softmax": ("x", "torch.softmax(x, dim=-1)"),
    "softmax by hand": ("x", "(x - x.amax(-1, True)).exp() / (x - x.amax(-1, True)).exp().sum(-1, True)"),
    "chain, sum": ("x, g, b", "(F.silu(x * g + b) * torch.tanh(x)).sum(-1)"),
    "gelu and residual, norm": ("x, b", "F.rms_norm(F.gelu(x + b) + x, x.shape[-1:], None, 1e-6)"),
    "mean": ("x", "x.mean(-1)"),
}
_PRODUCTS = (
    (16, 4096, 4096), (128, 4096, 4096), (512, 512, 512), (1024, 1024, 128), (2048, 2048, 2048), (4096, 4096, 4096),
    (1, 4096, 14336), (64, 14336, 4096),
)  # fmt: skip
_PRODUCT_PROGRAMS = {
    "product": "x @ w",
    "product, silu": "F.silu(x @ w)",
    "product, bias, gelu": "F.gelu(x @ w + b)",
    "product, division, sum": "((x @ w) / 2).sum(-1)",
    "norm, product": "F.rms_norm(x, x.shape[-1:], None, 1e-6) @ w",
}
_HEADS = ((2, 256, 4096, 64), (16, 256, 4096, 64), (32, 512, 512, 64), (16, 2048, 2048, 128), (32, 1, 8192, 128))
_ATTENTIONS = {
    "attention": "F.scaled_dot_product_attention(q, k, v)",
    "causal attention": "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "attention by hand": "torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) @ v",
}
_IMAGES = ((8, 64, 56, 64, 3), (32, 128, 28, 128, 3), (16, 256, 14, 512, 1), (64, 3, 224, 64, 7))
_CONVOLUTIONS = {
    "convolution": "F.conv2d(x, w, padding=P)",
    "convolution, relu, hardswish": "F.hardswish(F.relu(F.conv2d(x, w, b, padding=P)))",
}


def programs() -> list[Point]:
    """More than two hundred, without times."""
    return [Point(name, text, {}) for name, text in _programs()]


def _program(name: str, dtype: str, shapes: dict[str, tuple[int, ...]], body: str) -> tuple[str, str]:
    said = ", ".join(f"{argument}={dtype}{list(shape)}" for argument, shape in shapes.items())
    first = " x ".join(map(str, next(iter(shapes.values()))))
    last = " x ".join(map(str, list(shapes.values())[-1])) if len(shapes) > 1 else ""
    text = f"{HEAD}# mugraph: {said}\ndef program({', '.join(shapes)}):\n    return {body}\n"
    return f"{name}, {dtype} {first}{f', {last}' if last else ''}", text


def _programs() -> Iterator[tuple[str, str]]:
    for dtype in ("f16", "f32"):
        for name, (arguments, body) in _ROW_PROGRAMS.items():
            for rows in _ROWS:
                for width in _WIDTHS:
                    shapes = {one: (rows, width) if one == "x" else (width,) for one in arguments.split(", ")}
                    yield _program(name, dtype, shapes, body)
        for name, body in _PRODUCT_PROGRAMS.items():
            for m, k, n in _PRODUCTS:
                bias = {"b": (n,)} if "+ b" in body else {}
                yield _program(name, dtype, {"x": (m, k), "w": (k, n), **bias}, body)
        for name, body in _ATTENTIONS.items():
            for heads, rows, keys, depth in _HEADS:
                if name == "causal attention" and rows != keys:
                    continue
                shape = {"q": (1, heads, rows, depth), "k": (1, heads, keys, depth), "v": (1, heads, keys, depth)}
                yield _program(name, dtype, shape, body)
        for name, body in _CONVOLUTIONS.items():
            for n, c, side, out, taps in _IMAGES:
                bias = {"b": (out,)} if ", b" in body else {}
                shape = {"x": (n, c, side, side), "w": (out, c, taps, taps), **bias}
                yield _program(name, dtype, shape, body.replace("P", str(taps // 2)))


def measure(path: Path, seconds: float) -> str | None:
    """Measure what the file has no times for yet, until so many seconds are over: it can be called again. Why nothing
    can be measured, in one sentence, or None."""
    device = detect()
    if device.kind != "gpu":
        return device.note or "there is no GPU here to measure on"
    known = read(path).points if path.exists() else []
    named = {point.name for point in known}
    missing = [point for point in programs() if point.name not in named]
    regions = traced(missing)
    until = time.monotonic() + seconds
    with Measurer() as measurer:
        try:
            versions = dict(measurer.hello().versions)
        except Unavailable as error:
            return str(error)
        for point, region in zip(missing, regions, strict=True):
            if time.monotonic() > until:
                break
            if region is not None and (found := _measured(point, region, measurer)) is not None:
                known = [*known, found]
                write(_points(device, known, versions), path)
    print(f"{len(known)} of {len(programs())} programs have times in {path}")
    return None if known else "nothing could be measured"


def _points(device: Device, points: list[Point], versions: dict[str, str]) -> Points:
    return Points(device.name, device.target.name, datetime.now(UTC).date().isoformat(), METHOD, points, versions)


def _measured(point: Point, region: Region, measurer: Measurer) -> Point | None:
    infos = [region.values[live.value] for live in region.live_ins]
    if any(info.dtype not in DRAWN for info in infos):
        return None
    specs = [InputSpec(info.shape, info.strides, info.dtype, 0.1) for info in infos]
    try:
        eager = code_of(region)
    except Rejected:
        return None
    found = measurer.compare_called(peer_subjects(eager, ESTIMATED), specs, "", None, rounds=20)
    device, called = (
        {name: round(one.median_us, 3) for name, one in results.items() if isinstance(one, Summary)}
        for results in (found.device, found.called)
    )
    if not device:
        return None
    return Point(point.name, point.text, device, "measured by mugraph.research.baseline", called_us=called)
