"""A key changes with everything the result depends on, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.store.keys import code_digest, region_key, versions
from mugraph.targets import TARGETS

X = Tensor("x", (("m",), ("n",)), (16, 1), "f16", "x")
PROGRAM = TensorProgram(
    "sums",
    {"m": 4, "n": 16},
    (X,),
    (Op("x", Kind.LOAD, axes=("m", "n"), tensor="x"), Op("s", Kind.SUM, ("x",), ("m",), over=("n",))),
    {"s": Tensor("s", (("m",),), (1,), "f16")},
)
GIVEN = {
    "target": TARGETS["h200"],
    "device": "NVIDIA H200",
    "driver": "570.1",
    "space": "v1",
    "with_versions": {"torch": "2.13"},
}
KEY = region_key(PROGRAM, **GIVEN)


@pytest.mark.parametrize(
    "change",
    [
        {"target": TARGETS["h100"]},
        {"device": "NVIDIA H100"},
        {"driver": "571"},
        {"space": "v2"},
        {"with_versions": {"torch": "2.14"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_surroundings_count(change):
    assert region_key(PROGRAM, **{**GIVEN, **change}) != KEY


@pytest.mark.parametrize(
    "program",
    [
        replace(PROGRAM, sizes={"m": 4, "n": 32}),
        replace(PROGRAM, tensors=(replace(X, dtype="f32"),)),
        replace(PROGRAM, tensors=(replace(X, strides=(1, 4)),)),
        replace(PROGRAM, ops=(PROGRAM.ops[0], replace(PROGRAM.ops[1], f32=True))),
        replace(PROGRAM, outputs={"s": Tensor("s", (("m",),), (1,), "f32")}),
    ],
    ids=["sizes", "dtype", "strides", "precision", "output"],
)
def test_the_program_counts(program):
    assert region_key(program, **GIVEN) != KEY


def test_the_order_of_mappings_does_not_count():
    again = replace(PROGRAM, sizes={"n": 16, "m": 4})
    assert region_key(again, **GIVEN) == KEY


def test_installed_versions_and_code_are_the_default():
    given = {name: value for name, value in GIVEN.items() if name != "with_versions"}
    installed = {**versions(), "code": code_digest()}
    assert region_key(PROGRAM, **given) == region_key(PROGRAM, **given, with_versions=installed)
    assert set(versions()) == {"mugraph", "torch", "triton"}
