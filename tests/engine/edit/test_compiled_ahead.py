"""Kernels compiled ahead of their first launch: of a text with nothing but a kernel, and of the module that a program
calls, which has its own way to launch them and reads a file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_NAME
from mugraph.targets import TARGETS
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.subjects import load_module
from mugraph.tune.warmup import warm_up
from triton.runtime.jit import JITFunction


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Triton is asked to compile, which it does not do here: there is no device to compile it for."""
    asked: list[Any] = []

    def warmup(kernel: Any, *given: Any, grid: Any, **constants: Any) -> None:
        asked.append((kernel.__name__, {one.device.type for one in given}, grid, constants))

    monkeypatch.setattr(JITFunction, "warmup", warmup)
    return asked


def row_major(*shape: int) -> InputSpec:
    return InputSpec(shape, (shape[1], 1), "f32")


@pytest.mark.parametrize("module", [False, True], ids=["kernel", "module"])
def test_what_would_be_launched_is_compiled(module, maker, source, part, compiled: list[Any], tmp_path: Path):
    plan = maker.plan(source, part)
    inputs = [row_major(4, 8), row_major(8, 16), row_major(4, 16)]
    text = module_text([plan], maker.kernels, original_path=Path("model.py"), target=TARGETS["h200"])
    subject = Subject("module", text, on_tensors(plan), beside=((f"{RUNTIME_NAME}.py", RUNTIME),))
    if not module:
        subject, inputs = Subject("kernel", maker.kernels["gate"].standalone(), "launch_gate"), [row_major(4, 16)] * 2
    loaded = load_module(subject, tmp_path)
    was = loaded.gate
    warm_up(loaded, subject.function, inputs)
    assert compiled == [("gate", {"meta"}, (4, 1, 1), {"n": 16, "num_warps": 1, "num_stages": 2})]
    assert loaded.gate is was
