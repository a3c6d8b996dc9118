"""Results as values that can be sent and compared: what they are, and how far one is from another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

SLACK = 2.0
"""Roundings in its type that a kernel may add to the original's."""
SMALLEST = 1e-6
"""An error that is rounding in any order of float32 additions."""


@dataclass(frozen=True)
class Described:
    """A tensor. facts: all about it but its values. values: None where it has none (meta, fake)."""

    facts: dict[str, object]
    values: torch.Tensor | None


@dataclass(frozen=True)
class Raised:
    kind: str


def described(value: Any, inputs: Sequence[torch.Tensor] = ()) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value, inputs)
    if isinstance(value, dict):
        return {str(name): described(part, inputs) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [described(part, inputs) for part in value]
    if isinstance(value, str | int | float | bool | None | Raised):
        return value
    return f"an object of {type(value).__qualname__}"


def _tensor(tensor: torch.Tensor, inputs: Sequence[torch.Tensor]) -> Any:
    if tensor.is_nested:
        return [described(part) for part in tensor.unbind()]
    facts: dict[str, object] = {
        "type": type(tensor).__qualname__,
        "dtype": str(tensor.dtype),
        "shape": tuple(tensor.shape),
        "layout": str(tensor.layout),
        "device": str(tensor.device),
        "requires_grad": tensor.requires_grad,
    }
    plain = tensor.detach()
    if type(plain) not in (torch.Tensor, torch.nn.Parameter) or plain.is_meta or plain.layout != torch.strided:
        return Described(facts, None if plain.layout == torch.strided else plain.to_dense().clone())
    strides = zip(tensor.shape, tensor.stride(), strict=True)
    facts["strides"] = [stride for size, stride in strides if size > 1]  # of one element a stride says nothing
    if plain._is_zerotensor():  # without memory
        return Described(facts, torch.zeros(plain.shape, dtype=plain.dtype))
    owner = plain.untyped_storage()._cdata
    facts["shared with"] = [
        number
        for number, one in enumerate(inputs)
        if isinstance(one, torch.Tensor) and one.layout == torch.strided and one.untyped_storage()._cdata == owner
    ]
    return Described(facts, plain.resolve_conj().resolve_neg().clone())


def differences(got: Any, expected: Any, path: str = "result", *, bits: bool = True) -> Iterator[str]:
    """What of `got` is not as in `expected`. bits: whether tensors must have equal values, NaN being one of them."""
    if isinstance(got, Described) and isinstance(expected, Described):
        for name in got.facts | expected.facts:
            mine, other = got.facts.get(name), expected.facts.get(name)
            if mine != other:
                yield f"{path}: {name} {mine}, not {other}"
        one, two = got.values, expected.values
        if bits and one is not None and two is not None and one.shape == two.shape and not _same_bits(one, two):
            yield f"{path}: off by {_distance(one, two):.2g}"
    elif isinstance(got, dict) and isinstance(expected, dict) and got.keys() == expected.keys():
        for name in got:
            yield from differences(got[name], expected[name], f"{path}.{name}", bits=bits)
    elif isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        for number, (mine, other) in enumerate(zip(got, expected, strict=True)):
            yield from differences(mine, other, f"{path}[{number}]", bits=bits)
    elif type(got) is not type(expected) or got != expected:
        yield f"{path}: {_short(got)}, not {_short(expected)}"


def inexact(got: Any, eager: Any, exact: Any) -> Iterator[str]:
    """What of `got` is farther from the exact results than three times what eager PyTorch is, and a rounding."""
    for mine, other, truth in zip(_values(got), _values(eager), _values(exact), strict=True):
        own, error = _distance(other, truth), _distance(mine, truth)
        if not error <= max(3 * own, SLACK * torch.finfo(other.dtype).eps, SMALLEST):
            yield f"off by {error:.2g} where PyTorch is by {own:.2g}"


def _values(said: Any) -> Iterator[torch.Tensor]:
    if isinstance(said, Described):
        if said.values is not None and said.values.is_floating_point():
            yield said.values
    elif isinstance(said, list):
        for part in said:
            yield from _values(part)
    elif isinstance(said, dict):
        for part in said.values():
            yield from _values(part)


def _same_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.dtype != two.dtype:
        return False
    if one.is_complex():
        one, two = torch.view_as_real(one), torch.view_as_real(two)
    return (
        torch.equal(one.isnan(), two.isnan()) and torch.equal(one.nan_to_num(), two.nan_to_num())
        if one.is_floating_point()
        else torch.equal(one, two)
    )


def _distance(one: torch.Tensor, two: torch.Tensor) -> float:
    """||one - two|| / ||two||, or what ||one|| is where that is nothing."""
    kind = torch.complex128 if one.is_complex() or two.is_complex() else torch.float64
    return float((one.to(kind) - two.to(kind)).norm() / (two.to(kind).norm() or 1.0))


def _short(value: Any) -> str:
    return f"{value.facts}" if isinstance(value, Described) else f"{value}"[:200]
