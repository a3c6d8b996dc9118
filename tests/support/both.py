"""Regions' operators that launch two kernels with one of PyTorch's own between them, where Triton's compiler and the
driver are stood in for."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Sequence
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
def doubled_kernel(x_ptr, parts_ptr, more_ptr, N: tl.constexpr):
    pass


@triton.jit
def added_kernel(parts_ptr, more_ptr, made_ptr, out_ptr, N: tl.constexpr):
    pass


def launch_both(x, y):
    parts = torch.empty((33,), device=x.device, dtype=torch.float32)
    more = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    out = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    doubled_kernel[(4, 1, 1)](
        x, parts, more,
        N=8, num_warps=4, num_stages=2,
    )
    made = torch.mul(y, 3.0)
    added_kernel[(2,)](
        parts, more, made, out,
        N=8, num_warps=8, num_stages=2,
    )
    return out


def launch_behind(x, y):
    parts = torch.empty((33,), device=x.device, dtype=torch.float32)
    more = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    out = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    doubled_kernel[(4, 1, 1)](
        x, parts, more,
        N=8, num_warps=4, num_stages=2,
    )
    behind = y[1:]
    added_kernel[(2,)](
        parts, more, behind, out,
        N=8, num_warps=8, num_stages=2,
    )
    return out


def launch_chain(x, y):
    first = torch.empty((65,), device=x.device, dtype=torch.float32)
    ones = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    second = torch.empty((65,), device=x.device, dtype=torch.float32)
    twos = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    doubled_kernel[(4, 1, 1)](
        x, first, ones,
        N=8, num_warps=4, num_stages=2,
    )
    doubled_kernel[(4, 1, 1)](
        first, second, twos,
        N=8, num_warps=4, num_stages=2,
    )
    del first, twos
    third = torch.empty((65,), device=x.device, dtype=torch.float32)
    rest = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    doubled_kernel[(4, 1, 1)](
        second, third, rest,
        N=8, num_warps=4, num_stages=2,
    )
    del second
    out = torch.empty((2, 4), device=x.device, dtype=torch.float32)
    added_kernel[(2,)](
        third, ones, rest, out,
        N=8, num_warps=8, num_stages=2,
    )
    return out


def launch_any(x):
    size = x.numel()
    out = torch.empty((size,), device=x.device, dtype=torch.float32)
    doubled_kernel[(size, 1, 1)](x, out, out, N=8)
    return out

"""


CHAIN = TEXT[TEXT.index("def launch_chain") : TEXT.index("def launch_any")]
MADE = "    made = torch.mul(y, 5.0)\n    del second\n"
TEXT += CHAIN.replace("chain", "mixed").replace("    del second\n", MADE).replace("ones, rest, out", "ones, made, out")
START, END = TEXT.index("def launch_both"), TEXT.index("def launch_behind")
TEXT += TEXT[START:END].replace("launch_both", "launch_turned")
TEXT += TEXT[START:END].replace("launch_both", "launch_two").replace("return out", "return more, out")
TEXT += TEXT[START:END].replace("launch_both", "launch_read").replace("return out", "seen = out.shape\n    return out")

TAKEN = ("first", "now"), ("other", "ready"), ("operator", "prepared"), ("slowly", "run"), ("made_by", "launch")
"""Names of tensors that the runtime has uses of its own for."""
for one, two in TAKEN:
    renamed = re.sub(r"\by\b", two, re.sub(r"\bx\b", one, TEXT[START:END]))
    TEXT += renamed.replace("launch_both", f"launch_of_{one}")


def floats(place: int) -> Any:
    return (ctypes.c_float * 8).from_address(place)


def doubled(places: Places) -> None:
    floats(places[1])[:], floats(places[2])[:] = [2 * one for one in floats(places[0])], [5.0] * 8


def added(places: Places) -> None:
    floats(places[3])[:] = [sum(three) for three in zip(*map(floats, places[:3]), strict=True)]


PLACES = {
    "first": ("", 0), "ones": ("", 1024), "second": ("", 512), "twos": ("out", 0), "third": ("", 0), "rest": ("", 1280)
}  # fmt: skip
"""What a chain of kernels hands on: the first and the third share memory, and what nobody reads lies in the result."""
KERNELS = {"doubled_kernel": Kernel(70, 3, doubled), "added_kernel": Kernel(71, 4, added)}


def both_module(folder: Path, name: str) -> contextlib.AbstractContextManager[ModuleType]:
    """The module of these kernels, imported."""
    operators = [
        f'_{one} = _operator("{name}::{one}", "launch_{one}", lambda {given}: x.new_empty(2, 4))'
        for one, given in (("both", "x, y"), ("behind", "x, y"), ("any", "x"))
    ]
    operators += [
        f'_{one} = _operator("{name}::{one}", "launch_{one}", lambda x, y: x.new_empty(2, 4), scratch={PLACES})'
        for one in ("chain", "mixed")
    ]
    lies = "((4, 2), (1, 4))"
    turned = "x.new_empty_strided((4, 2), (1, 4))"
    operators += [
        f'_{one} = _operator("{name}::{one}", "launch_{one}", lambda x, y: {made}, {more})'
        for one, made, more in (
            ("turned", turned, f"laid=({lies},)"),
            ("two", f"(x.new_empty(2, 4), {turned})", f"results=2, laid=(None, {lies})"),
            ("read", turned, f"laid=({lies},)"),
        )
    ]
    operators += [
        f'_{which} = _operator("{name}::{which}", "launch_{which}", lambda {one}, {two}: {one}.new_empty(2, 4))'
        for which, one, two in ((f"of_{one}", one, two) for one, two in TAKEN)
    ]
    return kernel_module(folder, name, TEXT, operators)


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(8.0), torch.ones(2, 4)


def right(module: ModuleType) -> None:
    x, y = pair()
    assert torch.equal(module._both(x, y).reshape(-1), 2 * x + 5 + 3)


def shares_as_planned(first: Sequence[int], second: Sequence[int], third: Sequence[int], last: Sequence[int]) -> None:
    """Of the four launches of a chain, what the driver is told of tensors: they lie as `PLACES` says."""
    _, start, ones, *_ = first
    again, between, twos, *_ = second
    _, other, rest, *_ = third
    assert [at - start for at in (ones, again, between, other, rest)] == [1024, 0, 512, 0, 1280]
    assert twos == last[3]
