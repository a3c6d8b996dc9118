"""Runs a kernel in Triton's interpreter on a tensor that spans gigabytes of addresses and holds a few pages of memory.

A process of its own: TRITON_INTERPRET must be set before triton is imported. Arguments: the module, its launcher, the
rows, their length and their distance in elements. Says on standard output whether it computed the squares.
"""

from __future__ import annotations

import importlib.util
import sys

import torch
from mugraph.untouched import untouched
from mugraph.verification.interpreter import patch_interpreter


def spread(rows: int, length: int, apart: int) -> torch.Tensor:
    """Pages come when they are touched."""
    memory = untouched(4 * ((rows - 1) * apart + length))
    return torch.frombuffer(memory, dtype=torch.float32).as_strided((rows, length), (apart, 1))


def main() -> None:
    patch_interpreter()
    path, launcher, *numbers = sys.argv[1:]
    x = spread(*map(int, numbers))
    x.copy_(torch.randn(x.shape, generator=torch.Generator().manual_seed(0)))
    spec = importlib.util.spec_from_file_location("far", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(torch.equal(getattr(module, launcher)(x), x * x))


if __name__ == "__main__":
    main()
