"""Where regions with convolutions are cut: before them, and where their result is summed again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ir.region import PlainCalls

from tests.engine.ops.harness import randn
from tests.engine.units.regions import agrees, cut, units

X = {"x": randn(2, 4, 7, 6), "w": randn(4, 4, 3, 3, seed=1)}
CHANNELS = {"g": randn(4, seed=2), "b": randn(4, seed=3)}


def test_what_follows_element_by_element_is_one_unit() -> None:
    def residual(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.batch_norm(F.conv2d(x, w, b, padding=1), g, g * g + 1, b, g)
        return x + F.silu(y)

    (unit,) = units(agrees(residual, {**X, **CHANNELS}))[-1:]
    kinds = [op.kind for op in unit.program.ops]
    assert Kind.DOT in kinds
    assert any(tensor.windows for tensor in unit.program.tensors)
    assert unit.program.ops[-1].kind is Kind.ADD


def test_a_convolution_loads_its_input() -> None:
    def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(F.silu(F.conv2d(x, w, stride=2, padding=1)), w, padding="same")

    assert len(units(agrees(chain, X))) == 2


def test_sums_and_roots_over_a_map_are_other_units() -> None:
    def norm(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(F.conv2d(x, w, padding=1), 2, g, b))

    def edges(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(F.conv2d(x, w) ** 2 + F.conv2d(x, w.mT) ** 2 + 1e-3)

    for cut_up in (agrees(norm, {**X, **CHANNELS}), agrees(edges, X)):
        for unit in units(cut_up):
            below: set[str] = set()
            for op in unit.program.ops:
                if below.intersection(op.inputs):
                    assert not op.over
                    assert op.kind is not Kind.SQRT
                    below.add(op.name)
                elif op.kind is Kind.DOT:
                    below.add(op.name)


def test_a_transposed_one_is_one_unit_with_what_follows() -> None:
    def up(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)
        return F.hardswish(y) * g[:, None, None] + y

    (unit,) = units(agrees(up, {**X, **CHANNELS}))
    assert any(window.spread == 2 for tensor in unit.program.tensors for window in tensor.windows)


def test_so_is_one_in_three_dimensions() -> None:
    def volume(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(F.conv3d(x, w, stride=(1, 2, 1), padding=1)) * 2

    (unit,) = units(agrees(volume, {"x": randn(2, 3, 4, 7, 6), "w": randn(4, 3, 2, 3, 3, seed=1)}))
    assert Kind.DOT in [op.kind for op in unit.program.ops]


def test_other_convolutions_stay_as_they_are() -> None:
    def cropped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """Of places that the kernel's first tap does not reach."""
        return F.conv_transpose2d(x, w, padding=3)

    assert all(isinstance(unit, PlainCalls) for unit in cut(cropped, **X))
