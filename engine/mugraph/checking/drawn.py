"""Models and inputs of files of KernelBench's convention, drawn from a seed."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch

_log = logging.getLogger("mugraph.checking")


def loaded(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def inputs_of(module: ModuleType, seed: int, device: torch.device) -> Sequence[object]:
    return cast("Sequence[object]", made_on(vars(module)["get_inputs"], seed, device))


def model_of(module: ModuleType, seed: int, device: torch.device) -> torch.nn.Module:
    """The same for both files."""
    names = vars(module)
    _seeded(seed)
    made = cast("Sequence[Any]", names["get_init_inputs"]() if "get_init_inputs" in names else ())
    args, kwargs = made, cast("dict[str, Any]", {})
    if len(made) == 2 and type(made[0]) is list and isinstance(made[1], dict):
        args, kwargs = cast("list[Any]", made[0]), cast("dict[str, Any]", made[1])
    return cast(torch.nn.Module, made_on(lambda: names["Model"](*args, **kwargs), seed, device)).eval()


def on_device(inputs: Sequence[object], device: torch.device) -> list[object]:
    return [one.to(device, copy=True) if isinstance(one, torch.Tensor) else one for one in inputs]


def made_on(make: Callable[[], object], seed: int, device: torch.device) -> object:
    """Drawn on the device: a processor draws gigabytes for seconds. What cannot be made there is made by the
    processor, as KernelBench has it."""
    if device.type != "cpu":
        _seeded(seed)
        try:
            with device:
                return make()
        except (RuntimeError, TypeError) as error:
            _log.info("not made on %s: %s", device, error)
    _seeded(seed)
    return make()


def _seeded(seed: int) -> None:
    seed_all: Callable[[int], object] = torch.manual_seed  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    seed_all(seed)
