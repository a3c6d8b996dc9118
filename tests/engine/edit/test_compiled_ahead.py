"""What compiles a module's kernels ahead of it compiles what the module launches: Triton finds it in its cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.edit.module.file import module_text
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_NAME
from mugraph.solve.ahead import kernels_of_module
from mugraph.targets import TARGETS
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.subjects import load_module


@pytest.fixture
def text(maker, source, part) -> str:
    plan = maker.plan(source, part)
    return module_text([plan], maker.kernels, original_path=Path("model.py"), target=TARGETS["h200"])


def test_the_keys_are_the_same(text: str, maker, tmp_path: Path):
    module = load_module(Subject("ours", text, "gated", beside=((f"{RUNTIME_NAME}.py", RUNTIME),)), tmp_path)
    ((subject, inputs),) = kernels_of_module(text, maker.kernels.values())
    ahead = load_module(subject, tmp_path)
    alone = load_module(Subject("gate", maker.kernels["gate"].standalone(), "launch_gate"), tmp_path)
    assert ahead.gate.cache_key == module.gate.jit.cache_key
    assert alone.gate.cache_key != module.gate.jit.cache_key, "the line does not matter to Triton any more"
    assert inputs == (InputSpec((4, 16), (16, 1), "f32"),) * 2
    assert callable(getattr(ahead, subject.function))


def test_what_the_module_says_in_other_words_is_left_to_it(text: str, maker):
    assert list(kernels_of_module(text.replace("def gate(", "def gate_kernel("), maker.kernels.values())) == []
    assert list(kernels_of_module(maker.kernels["gate"].jit, maker.kernels.values())) == []
