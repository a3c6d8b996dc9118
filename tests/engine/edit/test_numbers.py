"""Numbers that vary, as the kernel module hands them to its kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mugraph.edit.module.parts import PRELUDE
from mugraph.edit.module.runtime import RUNTIME


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "kernels_of_numbers", "__file__": __file__, "_SOURCE": "program.py"}
    space |= {"_RAN": {}, "_REGIONS": {}, "_CALLED_FUNCTIONS": {}, "_OUTSIDE_NAMES": {}, "_BUILTINS": frozenset()}
    space |= {"_PATHS": {}, "_TF32": {}, "_CAPABILITY": (9, 0), "_CASES": {}, "_OWN": []}
    exec(compile(PRELUDE + RUNTIME, "runtime", "exec"), space)
    return space


@pytest.fixture
def runtime(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**whole}
    whole["_made_numbers"].clear()


X = torch.ones(4)


@pytest.mark.parametrize("value", [0.1, -3.5, 0.0, 7, 1e30, 1.2e-38])
def test_a_number_is_what_float32_has(value: float, runtime: dict[str, Any]) -> None:
    made = runtime["_number"](value, X)
    assert made.shape == ()
    assert made.dtype is torch.float32
    assert torch.equal(made, torch.tensor(value, dtype=torch.float32))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e39, 1e-40, True, None, "1", 1j, torch.ones(())])
def test_what_no_kernel_was_tested_with_is_refused(value: object, runtime: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no plain number|outside of the range"):
        runtime["_number"](value, X)


@pytest.mark.parametrize(("value", "fits"), [(6e4, True), (7e4, False), (1e-7, True), (2e-8, False), (0.0, True)])
def test_beside_numbers_of_a_small_range(value: float, fits: bool, runtime: dict[str, Any]) -> None:
    if fits:
        assert float(runtime["_number"](value, X, True)) == pytest.approx(value)
        return
    with pytest.raises(ValueError, match="outside of the range"):
        runtime["_number"](value, X, True)


@pytest.fixture
def on_gpu(whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[float], dict[str, int]]:
    """`_number`, the numbers that were filled in, and what the driver says: a device's tensors are the CPU's here."""
    filled, now = list[float](), {"stream": 5, "capturing": 0}

    def full(shape: tuple[int, ...], value: float, *, dtype: torch.dtype, device: object) -> torch.Tensor:
        filled.append(value)
        return torch.full(shape, value, dtype=dtype)

    stood_in = SimpleNamespace(full=full, float32=torch.float32)
    for name, other in {
        "torch": stood_in, "_current_stream": lambda _: now["stream"], "_capturing": lambda: bool(now["capturing"]),
    }.items():  # fmt: skip
        monkeypatch.setitem(whole, name, other)
    whole["_made_numbers"].clear()
    return whole["_number"], filled, now


def like(index: int = 0) -> Any:
    return SimpleNamespace(device=SimpleNamespace(type="cuda", index=index))


def test_what_was_filled_in_is_used_again_on_its_stream(on_gpu) -> None:
    number, filled, now = on_gpu
    first = number(0.5, like())
    assert number(0.5, like()) is first
    assert filled == [0.5]
    now["stream"] = 6
    assert number(0.5, like()) is not first
    assert number(0.5, like(1)) is not first
    number(0.25, like())
    assert filled == [0.5, 0.5, 0.5, 0.25]


def test_zero_keeps_its_sign(on_gpu) -> None:
    number, _, _ = on_gpu
    assert math.copysign(1.0, float(number(0.0, like()))) == 1.0
    assert math.copysign(1.0, float(number(-0.0, like()))) == -1.0


def test_a_graph_that_is_captured_has_its_own(on_gpu) -> None:
    number, filled, now = on_gpu
    number(0.5, like())
    now["capturing"] = 1
    number(0.5, like())
    number(0.75, like())
    now["capturing"] = 0
    number(0.75, like())
    assert filled == [0.5, 0.5, 0.75, 0.75]


def test_few_are_kept(on_gpu, whole: dict[str, Any]) -> None:
    number, filled, _ = on_gpu
    for at in range(1, 2000):
        number(float(at), like())
    assert len(filled) == 1999
    assert len(whole["_made_numbers"]) <= whole["_MOST_NUMBERS"]
