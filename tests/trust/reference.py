"""The truth about a program: its PyTorch function in float64, and the memory that PyTorch would hand to a kernel.

Nothing of the engine is asked: shapes and types are read from the comment above the function, strides and the types of
results from PyTorch itself.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from tests.trust.memory import Buffer, Floats
from tests.trust.pool import SOURCES, Entry

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_ARGUMENT = re.compile(r"(\w+)=(\w+)\[([^\]]*)\]")
_RANGE = re.compile(r"(\w+)=(\d+)\.\.(\d+)")
SETS = ("normal", "small", "large", "offset", "zeros", "negative")
"""Of inputs: everything is computed for all of them."""


@dataclass(frozen=True)
class Interface:
    """Of one tensor, as PyTorch has it. strides: in elements"""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def places(self) -> np.ndarray:
        """The place of every element."""
        total = np.zeros(self.shape, np.int64)
        for number, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            shape = [1] * len(self.shape)
            shape[number] = size
            total = total + np.arange(size).reshape(shape) * stride
        return total

    @property
    def extent(self) -> int:
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class Reference:
    """Of a program at one size.

    inputs:  the program's tensor -> what PyTorch hands over
    buffers: the same -> its memory; nobody may write to it
    results: output tensor -> what PyTorch returns; values: its numbers, [sets, *shape]
    """

    inputs: Mapping[str, Interface]
    buffers: Mapping[str, Buffer]
    results: Mapping[str, Interface]
    values: Mapping[str, Floats]


@cache
def _module() -> ModuleType:
    module = ModuleType("programs")
    exec(compile(SOURCES.read_text(encoding="utf-8"), str(SOURCES), "exec"), vars(module))
    return module


def function(name: str) -> Callable[..., Any]:
    return getattr(_module(), name)


@cache
def declared(name: str) -> tuple[dict[str, tuple[str, list[str]]], dict[str, tuple[int, int]]]:
    """Argument -> type and shape, in words; a size's name -> its range."""
    lines = SOURCES.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"def {name}("))
    comment = lines[at - 1]
    ranges = {found[1]: (int(found[2]), int(found[3])) for found in _RANGE.finditer(comment)}
    arguments = {found[1]: (found[2], found[3].split(", ")) for found in _ARGUMENT.finditer(comment)}
    return arguments, ranges


@cache
def reference(entry: Entry, step: int) -> Reference:
    """step: the size in the entry's range"""
    arguments, ranges = declared(entry.name)
    shapes = {
        name: (DTYPES[dtype], [step if size in ranges else int(size) for size in shape])
        for name, (dtype, shape) in arguments.items()
    }
    call = function(entry.name)
    generator = torch.Generator().manual_seed(zlib.crc32(f"{entry.name} {step}".encode()))
    inputs: dict[str, Interface] = {}
    buffers: dict[str, Buffer] = {}
    values: dict[str, list[Floats]] = {}
    with torch.no_grad():
        for number, kind in enumerate(SETS):
            given = {name: drawn(kind, shape, generator) for name, (_, shape) in shapes.items()}
            for tensor in entry.program["tensors"]:
                seen = eval(tensor["source"], {"__builtins__": {}}, given)
                name = tensor["name"]
                if name not in inputs:
                    dtype = NAMES[shapes[re.split(r"\W", tensor["source"])[0]][0]]
                    inputs[name] = Interface(dtype, tuple(seen.shape), tuple(seen.stride()))
                    buffers[name] = Buffer(len(SETS), inputs[name].extent)
                places = inputs[name].places()
                buffers[name].data[number, places] = seen.numpy()
                buffers[name].written[places] = True
            for name, result in zip(entry.results, returned(call(**given)), strict=True):
                values.setdefault(name, []).append(result.numpy().copy())
        real = {name: torch.zeros(shape, dtype=dtype) for name, (dtype, shape) in shapes.items()}
        results = {
            name: Interface(NAMES[result.dtype], tuple(result.shape), tuple(result.stride()))
            for name, result in zip(entry.results, returned(call(**real)), strict=True)
        }
    return Reference(inputs, buffers, results, {name: np.stack(sets) for name, sets in values.items()})


def returned(result: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (result,) if isinstance(result, torch.Tensor) else result


def drawn(kind: str, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """small: an eps of 1e-6 counts. offset: constants of both signs along the last dimension, and noise. zeros: in a
    quarter of the elements. negative: all of them"""
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    match kind:
        case "small":
            return values * 1e-3
        case "large":
            return values * 6.0
        case "offset":
            signs = torch.where(torch.arange(shape[-1]) % 3 == 0, -1.0, 1.0).double()
            return values + 2.0 * signs
        case "zeros":
            return torch.where(torch.rand(shape, generator=generator, dtype=torch.float64) < 0.25, 0.0, values)
        case "negative":
            return -values.abs()
        case _:
            return values
