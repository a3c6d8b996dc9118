"""Block graphs of a convolution."""

from __future__ import annotations

from functools import cache

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.text import parse_program
from mugraph.search.run import topologies

PROGRAM = """\
program convolution
  axes n=2, o=8, c=6, p=9, q=7, r=3, s=4
  tensor x f16[n, c, window p over r stride 2 pad 1 rest 1, window q over s pad 1 rest -2] strides [720, 120, 8, 1]
  tensor w f16[o, c, r, s]
  x[c, n, p, q, r, s] = load(x)
  w[c, o, r, s] = load(w)
  y[n, o, p, q] = dot(x, w, over=c*r*s)
  output y -> out f16[n, o, p, q]
"""


@cache
def graphs() -> tuple[TensorProgram, BlockGraph]:
    """The program, and its product in loops over taps and channels as the search finds it."""
    program = parse_program(PROGRAM)
    blocks = (found.block for found in topologies(program))
    return program, next(block for block in blocks if len(block.loop_axes) == 3)
