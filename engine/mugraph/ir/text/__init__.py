"""The text form of tensor programs, block graphs and μGraphs, which prints and parses back.

    mugraph rmsnorm_matmul(x, w) -> y
      axes b=16, h=1024, n=4096
      tensor x f16[b, h]
      tensor w f16[h, n] from "self.weight"
      tensor y f16[b, n]

      kernel rmsnorm_matmul(x, w, y)
        grid n/64, b/16
        loops h/256
        launch warps=4 stages=3
        for h/256:
          X[b, h] = load(x)  imap {x: φ, y: b} fmap {h: h}
          ...
        Y[b, n] = store(Z, y)  omap {x: n, y: b}

`one_launch q, k, v` before the kernels names those that are launched together, each with blocks of its own;
`combined product, sums` a kernel and the one that combines its sums in the same launch.
A pre-defined kernel is one line, `library mm(x, w) -> y = "torch.mm(x, w)"`, with what it computes below it
where that is known. A dimension of several axes is `head*dim`, one of none is `1`, one that is read through a window is
`window p over r stride 2 pad 1` (windows.py; `keeps last` where it is of one length and `p` varies, `by t` where its
length is known by the size of axis `t`, `by t behind` where that many places are after it); strides are shown
where they are not row-major; `: f32` marks a value the user's program computes in float32, `: tf32.cudnn` or
`: tf32.cublas` a product whose float32 operands it lets be rounded to TF32, by that setting of PyTorch's. Operators
keep their order: a loop body that is interrupted is opened again.
`reshape g*s` behind a load or store says that axes g and s of its tile are one dimension of a product (packing.py),
`repeat g` that a tensor without g repeats along it there. These words, the maps and the loops around an operator are
derived from the axis names, shown for the reader and checked when parsed.
An axis of a tensor program whose size is known at run time only is `b=1..64`.
"""

from mugraph.ir.text.lines import TextError
from mugraph.ir.text.parser import parse_block, parse_mugraph, parse_program
from mugraph.ir.text.printer import (
    format_block,
    format_launch,
    format_mugraph,
    format_op,
    format_program,
    format_tensor,
)

__all__ = [
    "TextError",
    "format_block",
    "format_launch",
    "format_mugraph",
    "format_op",
    "format_program",
    "format_tensor",
    "parse_block",
    "parse_mugraph",
    "parse_program",
]
