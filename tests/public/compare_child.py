"""Compares results: with kernels, without, and in double precision. Prints one phrase for the table."""

import sys
from pathlib import Path

import torch

SLACK = 2.0
"""Roundings in its type that kernels may add to the original's."""
SMALLEST = 1e-6
"""An error that is rounding in any order of float32 additions."""


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other.double()).norm() / other.double().norm().clamp_min(1e-30))


def main() -> None:
    exact, before, after = (torch.load(Path(sys.argv[1], f"{name}.pt")) for name in ("exact", "before", "after"))
    wrong: list[str] = []
    most = 0.0
    for name, result in after.items():
        old = before[name]
        if (result.shape, result.dtype) != (old.shape, old.dtype):
            wrong.append(f"{name} is {result.dtype} {tuple(result.shape)}")
        elif not result.is_floating_point():
            if not torch.equal(result, old):
                wrong.append(name)
        else:
            eager, error = distance(old, exact[name]), distance(result, exact[name])
            most = max(most, error)
            if not error <= max(3 * eager, SLACK * torch.finfo(old.dtype).eps, SMALLEST):
                wrong.append(f"{name} ({error:.1e}, before {eager:.1e})")
    print(f"wrong: {', '.join(wrong[:3])}" if wrong else f"equal ({most:.0e})")


if __name__ == "__main__":
    main()
