"""Two kernels and a region's operator that launches both, where Triton's compiler and the driver are stood in for."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.support.driver import Kernel, Places, kernel_module

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, parts_ptr, more_ptr, N: tl.constexpr):
    pass


@triton.jit
def joined_kernel(parts_ptr, more_ptr, y_ptr, sum_ptr, product_ptr, N: tl.constexpr):
    pass


def launch_joined(x, y):
    parts = torch.empty((8,), device=x.device, dtype=torch.float32)
    more = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    total = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    product = torch.empty((8,), device=x.device, dtype=torch.float32)
    parts_kernel[(4, 1, 1)](
        x, parts, more,
        N=8, num_warps=4, num_stages=2,
    )
    joined_kernel[(2, 3)](
        parts, more, y, total, product,
        N=8, num_warps=8, num_stages=2,
    )
    return product, total


def launch_large(x):
    parts = torch.empty((300000,), device=x.device, dtype=torch.float32)
    more = torch.empty((8,), device=x.device, dtype=torch.float32)
    parts_kernel[(4, 1, 1)](
        x, parts, more,
        N=8, num_warps=4, num_stages=2,
    )
    return more

"""


TEXT += TEXT[TEXT.index("def launch_joined") : TEXT.index("def launch_large")].replace("launch_joined", "launch_turned")


def floats(place: int) -> Any:
    return (ctypes.c_float * 8).from_address(place)


def parts(places: Places) -> None:
    """Waits after the first half: what else runs at the same time gets its turn."""
    floats(places[1])[:], floats(places[2])[:] = [2 * one for one in floats(places[0])], [5.0] * 8
    time.sleep(0.002)


def joined(places: Places) -> None:
    first, second, third = map(floats, places[:3])
    floats(places[3])[:] = [sum(three) for three in zip(first, second, third, strict=True)]
    floats(places[4])[:] = [one * other for one, other in zip(first, third, strict=True)]


KERNELS = {"parts_kernel": Kernel(70, 3, parts), "joined_kernel": Kernel(71, 5, joined)}


def joined_module(folder: Path, name: str) -> contextlib.AbstractContextManager[ModuleType]:
    """The module of these kernels, imported."""
    operators = [
        f'_joined = _operator("{name}::joined", "launch_joined", '
        "lambda x, y: (x.new_empty(8), x.new_empty(2, 4)), results=2)",
        f'_turned = _operator("{name}::turned", "launch_turned", lambda x, y: (x.new_empty(8), '
        "x.new_empty_strided((4, 2), (1, 4))), results=2, laid=(None, ((4, 2), (1, 4))))",
        f'_large = _operator("{name}::large", "launch_large", lambda x: x.new_empty(8))',
    ]
    return kernel_module(folder, name, TEXT, operators)


@contextlib.contextmanager
def on_the_first_gpu(module: ModuleType) -> Iterator[None]:
    """Tensors say that they are there, where C asks."""
    assert module._make_native()
    inside = module._inside_tensors()

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))
    def first(tensor: int, index: Any) -> int:
        index[0] = 0
        return 0

    place = ctypes.cast(first, ctypes.c_void_p).value
    module._begin(module._native, (*inside[:4], place, *inside[5:]))
    yield
    module._begin(module._native, inside)


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(8.0), torch.ones(2, 4)


def right(module: ModuleType, x: torch.Tensor | None = None, y: torch.Tensor | None = None) -> None:
    x, y = (given if made is None else made for given, made in zip(pair(), (x, y), strict=True))
    product, total = module._joined(x, y)
    assert torch.equal(total, 2 * x.view(2, 4) + 5 + y)
    assert torch.equal(product, 2 * x * y.reshape(-1))
    assert (product.shape, total.shape) == ((8,), (2, 4))
