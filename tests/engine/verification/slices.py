"""Slices of a program along its free axes, drawn, and whether their outputs are slices of its outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st
from mugraph.ir.program import TensorProgram
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.relations import Relations
from mugraph.verification.restrict import free_axes, places_of, restricted


def slices_of(own: TensorProgram, data: st.DataObject) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for axes in free_axes(own, [], Relations(own, [], sources=False)):
        size = own.sizes[min(axes)]
        start = data.draw(st.integers(0, size - 1))
        found |= dict.fromkeys(axes, (start, data.draw(st.integers(1, size - start))))
    return found


def values_of(own: TensorProgram, slices: Mapping[str, tuple[int, int]]) -> None:
    """Outputs of the slices are slices of the outputs."""
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.standard_normal((1, *t.shape(own.sizes))) for t in own.tensors}
    cut = {
        t.name: inputs[t.name][np.ix_([0], *(places_of(t, i, own.sizes, slices) for i in range(len(t.dims))))]
        for t in own.tensors
    }
    whole = evaluate_program(own, inputs, FloatArithmetic())
    found = evaluate_program(restricted(own, slices), cut, FloatArithmetic())
    for out in own.outputs.values():
        places = [places_of(out, i, own.sizes, slices) for i in range(len(out.dims))]
        np.testing.assert_allclose(found[out.name], whole[out.name][np.ix_([0], *places)], rtol=1e-9)
