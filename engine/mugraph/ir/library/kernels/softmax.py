"""Exponentials over their sum along the last dimension: `torch.softmax`.

What all of a row share may be subtracted from its exponents first, its maximum for one.
"""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import rows_of


def match(block: BlockGraph) -> LibraryCall | None:
    rows = rows_of(block, lambda op: op.kind.is_exponential, vectors=0)
    if rows is None:
        return None
    exp = rows.forms.exp(rows.x[0])
    if rows.result != rows.forms.div(exp, rows.forms.sum(exp, rows.over)):
        return None
    return rows.call("torch.softmax", ("-1",), functions=True)


KERNEL = PredefinedKernel(match)
