"""The names of PyTorch's calls, each in one spelling."""

from __future__ import annotations

_PREFIXES = (
    ("torch._C.TensorBase.", "Tensor."), ("torch._tensor.TensorBase.", "Tensor."),
    ("torch._C._linalg.linalg_", "torch.linalg."), ("torch._C._special.special_", "torch.special."),
    ("torch._tensor.Tensor.", "Tensor."), ("torch.Tensor.", "Tensor."),
    ("torch._C._nn.", "torch.nn.functional."), ("torch._C._VariableFunctions.", "torch."),
    ("torch.functional.", "torch."),
)  # fmt: skip


def canonical(target: str) -> str:
    """One spelling for the several places PyTorch keeps the same function in."""
    for prefix, short in _PREFIXES:
        if target.startswith(prefix):
            return short + target.removeprefix(prefix)
    return target
