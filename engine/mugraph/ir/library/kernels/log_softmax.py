"""Numbers less the logarithm of the sum of their exponentials along the last dimension: `torch.log_softmax`.

What all of a row share may be subtracted from its numbers first, its maximum for one.
"""

from __future__ import annotations

from fractions import Fraction

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.forms import Form
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import Rows, rows_of
from mugraph.ir.ops import Op


def match(block: BlockGraph) -> LibraryCall | None:
    logarithms = [op for op in block.ops if _is_logarithm(op)]
    rows = rows_of(block, _is_logarithm, vectors=0) if len(logarithms) == 1 else None
    if rows is None:
        return None
    x = rows.x[0]
    shifts = (rows.forms.number(Fraction(0)), rows.forms.amax(x, rows.over), rows.mean(x))
    if all(rows.result != _shifted(rows, logarithms[0], shift) for shift in shifts):
        return None
    return rows.call("torch.log_softmax", ("-1",), functions=True)


def _shifted(rows: Rows, logarithm: Op, shift: Form) -> Form:
    forms = rows.forms
    less = forms.add(rows.x[0], forms.mul(forms.number(Fraction(-1)), shift))
    total = forms.opaque(logarithm.kind, forms.sum(forms.exp(less), rows.over))
    return forms.add(less, forms.mul(forms.number(Fraction(-1)), total))


def _is_logarithm(op: Op) -> bool:
    return op.kind.opaque is not None and op.kind.opaque.undoes_exp


KERNEL = PredefinedKernel(match)
