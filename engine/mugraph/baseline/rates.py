"""What PyTorch's kernels reach of a device's figures, as fitted to measured times (`rates.json`, which
`python -m mugraph.research.baseline` writes)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("rates.json")


@dataclass(frozen=True)
class Rates:
    """Microseconds, and shares of the device's figures.

    graph_us, kernel_us: of a region, once; of each kernel, to start and to end
    stream:      share of the bandwidth that element-wise kernels reach
    cached:      how many times as fast is what the second-level cache still holds
    reduce_us, row_us: of a reduction, besides its traffic; of each 2048 bytes of its rows
    function_us: of 2^20 exponentials or the like
    window_us, tap_us: of pooling: of 2^20 windows; of 2^20 elements of windows
    library:     share of the bandwidth that products reach
    wide:        share of the tensor cores' rate: products of 16-bit numbers
    float8:      share of the tensor cores' rate of float8 numbers: their products (0.906 to 0.954 on an H100, of 2048
                 to 8192 rows, in a CUDA graph, PyTorch 2.11)
    float32:     the same of float32 products, without TF32
    convolved32: the same of float32 convolutions in TF32, which they take unless they are told not to
    product_tf32: the same of float32 products in TF32 (379 TFLOP/s of cuBLAS on an H200, 4096 x 4096 x 4096)
    depth_us:    of a product, each 64 elements that it sums
    softmax_us, step_us: of an attention: its start and end; a step over 128 keys with heads of 64
    fused_stream, fused_reduce_us, fused_row_us: as above, of a kernel that torch.compile makes
    """

    graph_us: float = 0.5
    kernel_us: float = 1.9
    stream: float = 0.7
    cached: float = 2.0
    reduce_us: float = 1.0
    row_us: float = 1.0
    function_us: float = 0.5
    window_us: float = 11.0
    tap_us: float = 1.3
    library: float = 0.85
    wide: float = 0.75
    float8: float = 0.91
    float32: float = 0.062
    convolved32: float = 0.25
    product_tf32: float = 0.383
    depth_us: float = 0.05
    softmax_us: float = 1.9
    step_us: float = 1.1
    fused_stream: float = 0.8
    fused_reduce_us: float = 0.5
    fused_row_us: float = 0.1


class Fitted(msgspec.Struct, frozen=True):
    """device, date, points: what the rates were fitted to."""

    device: str
    date: str
    points: int
    rates: Rates


@cache
def fitted() -> Fitted:
    """As it is kept with the engine."""
    return msgspec.json.decode(FILE.read_bytes(), type=Fitted)
