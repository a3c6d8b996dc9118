"""A kernel module tells right kernels from wrong ones by itself, on any device, as the float test does here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.edit.module.judge import JUDGE
from mugraph.edit.module.masks import MASKS
from mugraph.edit.module.parts import IMPORTS

from tests.engine.verification.launchers import FAMILIES, Family

CPU = torch.device("cpu")
FIRST: Mapping[str, Family] = {name: found for name, found in FAMILIES.items() if name != "long sums f32"}
UNSEEN = {
    # numbers 1,000 aside: a form, which the float test refuses before it is written, and no fault of a device
    *(("centred", name) for name in FAMILIES["centred"].wrong),
    *((family, "one pass") for family in ("layer norm f16", "layer norm bf16")),
    # numbers in the middle of two, and a rounding before that of the result: forms as well
    *((name, wrong) for name, found in FAMILIES.items() for wrong in found.wrong if wrong.startswith("halves ")),
    ("e4m3 rows bf16", "of bfloat16 before"),
    ("rms norm f16", "one less"),  # less than what float16 leaves of 16 rows' mean squares
}
RIGHT = [(family, name) for family, found in FIRST.items() for name in found.right]
WRONG = [(family, name) for family, found in FIRST.items() for name in found.wrong if (family, name) not in UNSEEN]


def trouble(family: Family, body: str, tmp_path: Path) -> str | None:
    """What the module says of a kernel for the family's program."""
    made: dict[str, Any] = {}
    exec(compile(family.module(body), "launcher.py", "exec"), made)
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    specs = []
    multiplied = sum(len(shape) > 1 for shape in family.shapes.values()) > 1
    for shape in family.shapes.values():
        strides = torch.empty(shape, device="meta").stride()
        specs.append((shape, strides, family.dtype, max(shape[-2:]) ** -0.25 if multiplied and len(shape) > 1 else 1.0))
    module["_CASES"] = {"case": (made["launch"], family.eager, None, tuple(specs))}
    module["_TF32"] = {}
    errors: Callable[..., list[tuple[float, str | None]]] = module["_errors"]
    ((_, found),) = errors("case", CPU)
    return found


@pytest.mark.parametrize(("family", "name"), RIGHT)
def test_right_ones_agree(family: str, name: str, tmp_path: Path) -> None:
    assert trouble(FIRST[family], FIRST[family].right[name], tmp_path) is None


@pytest.mark.parametrize(("family", "name"), WRONG)
def test_wrong_ones_do_not(family: str, name: str, tmp_path: Path) -> None:
    assert trouble(FIRST[family], FIRST[family].wrong[name], tmp_path) is not None


def _dequantised(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return x @ (w.to(x.dtype) * s[:, None]).T


def _in_float32(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return ((x.float() @ w.float().T) * s.float()).to(x.dtype)


def _without_a_sign(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return ((x.float() @ w.float().abs().T) * s.float()).to(x.dtype)


def _without_an_end(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return _in_float32(x[:, :-1], w[:, :-1], s)


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2])
def test_weights_of_eight_bits(kind: torch.dtype, tmp_path: Path) -> None:
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    specs = (
        ((24, 64), (64, 1), torch.float16, 0.35),
        ((40, 64), (64, 1), kind, 0.35),
        ((40,), (1,), torch.float16, 1.0),
    )
    for kernel in (_in_float32, _without_a_sign, _without_an_end):
        module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
        exec(compile(text.read_text(), str(text), "exec"), module)
        module["_CASES"] = {"case": (kernel, _dequantised, None, specs)}
        module["_TF32"] = {}
        ((error, found),) = module["_errors"]("case", CPU)
        if kernel is _in_float32:
            assert found is None
            assert error < 2**-10
        elif kernel is _without_an_end or kind is not torch.uint8:  # none of which has a sign
            assert found is not None


def _times_in_halves(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * 0.99) * y


def _times_in_float32(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x.float() * 0.99) * y.float()).to(x.dtype)


def _times_more(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x.float() * 1.04) * y.float()).to(x.dtype)


def _beyond(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Infinite where the result is a number that has a third of the largest."""
    result = _times_in_float32(x, y)
    return torch.where(result.abs() > 20_000, torch.inf, result)


@pytest.mark.parametrize("kernel", [_times_in_float32, _times_more, _beyond])
def test_what_is_next_to_the_largest_number_is_infinite_or_not(
    kernel: Callable[..., torch.Tensor], tmp_path: Path
) -> None:
    """Thousands of products of float16 are about as large as its largest number: a rounding decides."""
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    spec = ((512, 256), (256, 1), torch.float16, 180.0)
    module["_CASES"] = {"case": (kernel, _times_in_halves, None, (spec, spec))}
    module["_TF32"] = {}
    ((_, found),) = module["_errors"]("case", CPU)
    assert (found is None) == (kernel is _times_in_float32), found


def _attended(k: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    cache[:, at] = k
    return cache.float().sum(1).to(k.dtype)


def _elsewhere(k: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The right result; the cache is left wrong for the next call."""
    found = _attended(k, cache, at)
    cache[:, at] = k.flip(0)
    return found


def _nothing(k: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return _attended(k, cache.clone(), at)


@pytest.mark.parametrize("kernel", [_attended, _elsewhere, _nothing])
def test_what_is_written_is_compared_too(kernel: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    specs = (
        ((8, 3, 16), (48, 16, 1), torch.float16, 1.0),
        ((8, 12, 16), (192, 16, 1), torch.float16, 1.0),
        ((3,), (1,), torch.int64, None),
    )
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    module["_CASES"] = {"case": (kernel, _attended, None, specs, (1,))}
    module["_TF32"] = {}
    (_, result), (_, cache) = module["_errors"]("case", CPU)
    assert result is None
    assert (cache is None) == (kernel is _attended)


def _up_to(x: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """What is in the cache up to a place."""
    seen = torch.arange(cache.shape[0]) <= at
    return x + (cache * seen[:, None]).sum(0)


def _first_alone(x: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return x + cache[0]


@pytest.mark.parametrize("kernel", [_up_to, _first_alone])
def test_places_in_a_cache_are_drawn(kernel: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    specs = (
        ((64,), (1,), torch.float32, 1.0),
        ((96, 64), (64, 1), torch.float32, 1.0),
        ((1,), (1,), torch.int32, range(96)),
    )
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    module["_CASES"] = {"case": (kernel, _up_to, None, specs)}
    module["_TF32"] = {}
    ((_, found),) = module["_errors"]("case", CPU)
    assert (found is None) == (kernel is _up_to)


@pytest.mark.parametrize("what", [range(40), range(3), range(-(1 << 31), 1 << 31)], ids=str)
def test_integers_are_in_their_range(what: range, tmp_path: Path) -> None:
    text = tmp_path / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{MASKS}")
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    found = module["_filled"](torch.zeros(5, 8, dtype=torch.int32), what, torch.Generator().manual_seed(0))
    numbers = set(found.flatten().tolist())
    assert all(one in what for one in numbers)
    assert len(numbers) == min(len(what), 40)  # no two are one where there are enough
    assert (min(numbers) < 0) == (what.start < 0)
