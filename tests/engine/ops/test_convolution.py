"""Convolutions mean what PyTorch's do, whatever their sizes, strides, pads, dilations and groups."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_program
from mugraph.ir.text import format_program, parse_program
from mugraph.search.kernel_graphs.solver import as_block
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.verification import torch_reference
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record

DRAWS = 60


def drawn(rng: random.Random) -> tuple[str, dict[str, torch.Tensor], dict[str, Any]]:
    """The function, its tensors and its other arguments."""
    rank, groups = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2, 3))
    c, o = rng.choice((1, 3)), rng.choice((1, 2))
    taps = [rng.choice((1, 2, 3, 4)) for _ in range(rank)]
    space = [rng.choice((4, 5, 7, 8)) for _ in range(rank)]
    batch = (2,) if rng.random() < 0.8 else ()
    tensors = {"x": torch.randn(*batch, groups * c, *space), "w": torch.randn(groups * o, c, *taps)}
    if rng.random() < 0.5:
        tensors["b"] = torch.randn(groups * o)
    options: dict[str, Any] = {"dilation": [rng.choice((1, 1, 2)) for _ in taps], "groups": groups}
    padding = rng.choice(("same", "valid", 1, [rng.choice((0, 1, 2)) for _ in taps], [0 for _ in taps]))
    return f"conv{rank}d", tensors, {
        **options, "padding": padding, "stride": 1 if padding == "same" else [rng.choice((1, 2, 3)) for _ in taps],
    }  # fmt: skip


def drawn_transposed(rng: random.Random) -> tuple[str, dict[str, torch.Tensor], dict[str, Any]]:
    """The same, of calls that have a rule."""
    rank, groups = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2))
    c, o = rng.choice((1, 3)), rng.choice((1, 2))
    taps, dilation = [rng.choice((1, 2, 3, 4)) for _ in range(rank)], [rng.choice((1, 1, 2)) for _ in range(rank)]
    space, stride = [rng.choice((2, 3, 5)) for _ in range(rank)], [rng.choice((1, 2, 3)) for _ in range(rank)]
    batch = (2,) if rng.random() < 0.8 else ()
    tensors = {"x": torch.randn(*batch, groups * c, *space), "w": torch.randn(groups * c, o, *taps)}
    if rng.random() < 0.5:
        tensors["b"] = torch.randn(groups * o)
    reach = [(size - 1) * step for size, step in zip(taps, dilation, strict=True)]
    return f"conv_transpose{rank}d", tensors, {
        "stride": stride, "padding": [rng.randint(0, most) for most in reach], "groups": groups, "dilation": dilation,
        "output_padding": [rng.randrange(max(of)) for of in zip(stride, dilation, strict=True)],
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("draw", [drawn, drawn_transposed], ids=["direct", "transposed"])
def test_every_evaluation_is_pytorch(
    draw: Callable[[random.Random], tuple[str, dict[str, torch.Tensor], dict[str, Any]]],
) -> None:
    rng = random.Random(0)
    torch.manual_seed(0)
    done = 0
    while done < DRAWS:
        name, tensors, options = draw(rng)

        def convolution(
            x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None, name: str = name, options: Any = options
        ) -> torch.Tensor:
            return getattr(F, name)(x, w, b, **options)

        try:
            expected = convolution(*(tensor.double() for tensor in tensors.values())).numpy()
        except RuntimeError:  # nothing is left of a dimension
            continue
        done += 1
        lowered = lower_region(record(convolution, tensors))
        program = lowered.program
        assert check_program(program) == []
        assert parse_program(format_program(program)) == program
        assert program_from_json(program_to_json(program)) == program
        shapes = {tensor.name: tensor.shape(program.sizes) for tensor in program.tensors}  # dimensions may lie as one
        given = {tensor: tensors[tensor].double().numpy().reshape(1, *shapes[tensor]) for tensor in lowered.inputs}
        (result,) = evaluate_program(program, given, FloatArithmetic()).values()
        np.testing.assert_allclose(result.reshape(expected.shape), expected, atol=1e-12, err_msg=f"{name} {options}")
        values = torch_reference.evaluate(program, tensors)
        (exact,) = torch_reference.outputs(program, values).values()
        np.testing.assert_allclose(
            exact.numpy().reshape(expected.shape), expected, atol=1e-12, err_msg=f"{name} {options}"
        )
        check_call(program, tensors, expected, f"{name} {options}")


def check_call(program: TensorProgram, tensors: dict[str, torch.Tensor], expected: Any, what: str) -> None:
    """PyTorch's own kernel for it, if there is one, computes it."""
    call = library_call(as_block(program))
    if call is not None:
        scope: dict[str, Any] = {"torch": torch, **{name: tensor.double() for name, tensor in tensors.items()}}
        for view in call.operands:
            scope[view.tensor.name] = scope[view.tensor.name].reshape(view.own_shape)
        if call.allocates:
            exec(call.text({"x": "x", "w": "w", "b": "b", "out": "out"}), scope)
            np.testing.assert_allclose(scope["out"].numpy().reshape(expected.shape), expected, atol=1e-12, err_msg=what)


def test_a_convolution_is_a_kernel_of_pytorch() -> None:
    tensors = {"x": torch.randn(2, 6, 9, 8), "w": torch.randn(4, 3, 3, 2)}
    lowered = lower_region(record(lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=1, groups=2), tensors))
    call = library_call(as_block(lowered.program))
    assert call is not None
    assert call.shown == "torch.conv2d(x, w, None, (2, 1), (1, 1), (1, 1), 2)"
    uneven = lower_region(record(lambda x, w: F.conv2d(x, w, padding="same", groups=2), tensors))
    assert library_call(as_block(uneven.program)) is None  # more zeros behind than before


def test_it_may_have_a_bias() -> None:
    tensors = {"x": torch.randn(2, 6, 9, 8), "w": torch.randn(6, 3, 3, 2), "b": torch.randn(6)}
    lowered = lower_region(record(lambda x, w, b: F.conv2d(x, w, b, groups=2), tensors))
    call = library_call(as_block(lowered.program))
    assert call is not None
    assert call.shown == "torch.conv2d(x, w, b, (1, 1), (0, 0), (1, 1), 2)"
    assert call.copied == 2 * 6 * 7 * 7  # PyTorch adds it in a kernel of its own
    narrow = {"x": torch.randn(2, 6, 9, 8), "w": torch.randn(6, 1, 3, 2), "b": torch.randn(6)}
    call = library_call(as_block(lower_region(record(lambda x, w, b: F.conv2d(x, w, b, groups=6), narrow)).program))
    assert call is not None
    assert call.copied == 0
    for other in (lambda x, w, b: F.conv2d(x, w, 2 * b, groups=2), lambda x, w, b: F.conv2d(x, w, groups=2) + b[0]):
        assert library_call(as_block(lower_region(record(other, tensors)).program)) is None


def test_a_pointwise_convolution_needs_no_window() -> None:
    tensors = {"x": torch.randn(2, 6, 9, 8), "w": torch.randn(4, 6, 1, 1)}
    program = lower_region(record(lambda x, w: F.conv2d(x * 2, w), tensors)).program
    assert not any(tensor.windows for tensor in program.tensors)


def test_of_several_images_it_is_a_kernel_of_pytorch() -> None:
    tensors = {"x": torch.randn(2, 6, 9, 8), "w": torch.randn(4, 6, 1, 1), "b": torch.randn(4)}
    program = lower_region(record(lambda x, w, b: F.conv2d(x, w, b), tensors)).program
    call = library_call(as_block(program))
    assert call is not None
    assert call.shown == "torch.conv2d(x, w, b, (1, 1), (0, 0), (1, 1))"
    expected = F.conv2d(*(tensor.double() for tensor in tensors.values())).numpy()
    check_call(program, tensors, expected, call.shown)


def test_small_sizes_keep_what_a_window_reads() -> None:
    """A pad as large as the reduced kernel would leave nothing of the input."""
    tensors = {"x": torch.randn(1, 2, 9, 9), "w": torch.randn(2, 2, 7, 7)}
    program = lower_region(record(lambda x, w: F.conv2d(x, w, stride=2, padding=3), tensors)).program
    up = lower_region(record(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=3), tensors)).program
    for one in (program, up):
        verdict = verify_topology(one, as_block(one), seed=1)
        assert verdict.passed, verdict.reason


@pytest.mark.parametrize(
    ("function", "x", "w", "options", "last"),
    [
        (F.conv2d, (2, 3, 9, 8), (5, 3, 3, 2), {"stride": (2, 1), "padding": 1}, True),
        (F.conv2d, (1, 4, 9, 8), (4, 4, 2, 1), {"dilation": 2}, True),
        (F.conv2d, (2, 6, 9, 8), (4, 3, 3, 2), {"groups": 2}, False),
        (F.conv1d, (2, 3, 9), (5, 3, 3), {}, False),
        (F.conv2d, (3, 9, 8), (5, 3, 3, 2), {}, False),
    ],
)
def test_what_the_next_kernel_reads_has_its_channels_last(function, x, w, options, last) -> None:
    tensors = {"x": torch.randn(x), "w": torch.randn(w)}
    program = lower_region(record(lambda x, w: torch.tanh(function(x, w, **options)), tensors)).program
    (product,) = (op.name for op in program.ops if op.kind.contracts)
    stored = in_memory(program)
    call = library_call(as_block(subprogram(program, [product], [], stored)))
    assert call is not None
    assert bool(call.format) == last
    scope: dict[str, Any] = {"torch": torch, **{name: tensor.double() for name, tensor in tensors.items()}}
    exec(call.text({"x": "x", "w": "w", stored[product].name: "out"}), scope)
    expected = function(scope["x"], scope["w"], **options)
    assert scope["out"].is_contiguous()
    expected = expected.movedim(1, -1) if last else expected
    torch.testing.assert_close(scope["out"].reshape(expected.shape), expected)


def test_one_that_lies_so_already_is_not_turned() -> None:
    x = torch.randn(2, 6, 9, 8).contiguous(memory_format=torch.channels_last)
    tensors = {"x": x, "w": torch.randn(4, 6, 3, 3)}
    program = lower_region(record(lambda x, w: torch.tanh(F.conv2d(x, w)), tensors)).program
    (product,) = (op.name for op in program.ops if op.kind.contracts)
    call = library_call(as_block(subprogram(program, [product], [], in_memory(program))))
    assert call is not None
    assert call.format == "torch.channels_last"
    assert call.moved == 4 * (x.numel() + 4 * 6 * 9 + 2 * 4 * 7 * 6)
