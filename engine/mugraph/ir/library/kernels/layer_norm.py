"""Rows less their mean over the root of their variance, maybe with a weight and a bias:
`torch.nn.functional.layer_norm` over the last dimensions.

PyTorch keeps the statistics in float32, whatever the type.
"""

from __future__ import annotations

from fractions import Fraction

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.forms import Form
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import Rows, norm_call


def _standardized(rows: Rows, eps: Fraction) -> Form:
    forms, (x, _) = rows.forms, rows.x
    centred = forms.add(x, forms.mul(forms.constant(-1.0), rows.mean(x)))
    variance = rows.mean(forms.mul(centred, centred))
    return forms.div(centred, forms.sqrt(forms.add(variance, forms.number(eps))))


def match(block: BlockGraph) -> LibraryCall | None:
    return norm_call(block, "torch.nn.functional.layer_norm", ("weight", "bias"), _standardized)


KERNEL = PredefinedKernel(match)
