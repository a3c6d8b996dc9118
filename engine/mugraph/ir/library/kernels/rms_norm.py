"""Rows over the root of their mean square, maybe with a weight: `torch.nn.functional.rms_norm` over the last ones of
their dimensions.

PyTorch keeps the mean square in float32, whatever the type.
"""

from __future__ import annotations

from fractions import Fraction

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.forms import Form
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import Rows, norm_call


def _over_its_root(rows: Rows, eps: Fraction) -> Form:
    forms, (x, _) = rows.forms, rows.x
    return forms.div(x, forms.sqrt(forms.add(rows.mean(forms.mul(x, x)), forms.number(eps))))


def match(block: BlockGraph) -> LibraryCall | None:
    return norm_call(block, "torch.nn.functional.rms_norm", ("weight",), _over_its_root)


KERNEL = PredefinedKernel(match)
