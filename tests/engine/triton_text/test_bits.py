"""What is said to have the same bits as PyTorch has them, and what rounds in another place is not said to."""

from __future__ import annotations

from math import inf, nan

import pytest
import torch
from mugraph.ir.dtypes import DType
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.triton_text.check import check_bits

_N = 64
_HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(tl.float32)
    y = tl.load(y_ptr + at).to(tl.float32)
    z = tl.load(z_ptr + at).to(tl.float32)
    out = {body}
    tl.store(out_ptr + at, out.to(tl.{kind}))


def launch_kernel(x, y, z):
    out = torch.empty(({n},), device=x.device, dtype=torch.{kind})
    kernel[(4, 1, 1)](x, y, z, out, BLOCK=16, num_warps=4, num_stages=1)
    return out
"""


def _program(dtype: DType, *ops: Op) -> TensorProgram:
    def tensor(name: str) -> Tensor:
        return Tensor(name, (("n",),), (1,), dtype)

    loads = tuple(Op(name, Kind.LOAD, tensor=name, axes=("n",)) for name in "xyz")
    last = ops[-1].name
    return TensorProgram("p", {"n": _N}, tuple(map(tensor, "xyz")), (*loads, *ops), {last: tensor("out")})


def _op(name: str, kind: Kind, *inputs: str, **more: object) -> Op:
    return Op(name, kind, inputs, axes=("n",), **more)


_SUM = (_op("a", Kind.ADD, "x", "y"), _op("b", Kind.ADD, "a", "z"))
_SUM_OF_PRODUCT = (_op("a", Kind.MUL, "x", "y"), _op("b", Kind.ADD, "a", "z"))
_PRODUCT_OF_SUM = (_op("a", Kind.ADD, "x", "y"), _op("b", Kind.MUL, "a", "z"))
_RELU = (_op("a", Kind.ADD, "x", "y"), _op("b", Kind.UNARY, "a", fn="relu"))


@pytest.mark.parametrize(
    ("dtype", "ops", "body"),
    [
        ("f32", _SUM, "x + y + z"),
        ("f32", _SUM, "z + (y + x)"),
        ("f32", _PRODUCT_OF_SUM, "z * (x + y)"),
        ("f16", _SUM, "(x + y).to(tl.float16).to(tl.float32) + z"),
        ("f16", _SUM_OF_PRODUCT, "(x * y).to(tl.float16).to(tl.float32) + z"),
        ("bf16", _PRODUCT_OF_SUM, "(x + y).to(tl.bfloat16).to(tl.float32) * z"),
        ("f16", _RELU, "tl.maximum(x + y, 0.0, propagate_nan=tl.PropagateNan.ALL)"),
        ("f16", _RELU, "tl.where(x + y < 0.0, 0.0, x + y)"),
        ("f16", _RELU, "tl.maximum((x + y).to(tl.float16).to(tl.float32), 0.0, propagate_nan=tl.PropagateNan.ALL)"),
    ],
)
def test_the_same_operations_have_the_same_bits(dtype: DType, ops: tuple[Op, ...], body: str) -> None:
    assert _checked(dtype, ops, body)[0] is None


@pytest.mark.parametrize(
    ("dtype", "ops", "body", "why"),
    [
        ("f32", _SUM, "x + (y + z)", "is not what the program computes"),
        ("f32", _SUM, "y + z + x", "is not what the program computes"),
        ("f32", _SUM, "(x + y).to(tl.float16).to(tl.float32) + z", "float16"),
        ("f32", _SUM_OF_PRODUCT, "x * y + z", "a compiler may make them one operation"),
        ("f32", _SUM_OF_PRODUCT, "tl.fma(x, y, z)", "a compiler may make them one operation"),
        ("f32", _PRODUCT_OF_SUM, "x * z + y * z", "a compiler may make them one operation"),
        ("f32", _PRODUCT_OF_SUM, "(x + y) / (1.0 / z)", "it divides"),
        ("f16", _SUM, "x + y + z", "is not what the program computes"),
        ("f16", _PRODUCT_OF_SUM, "(x + y) * z", "is not what the program computes"),
        ("bf16", _SUM, "(x + y).to(tl.float16).to(tl.float32) + z", "it computes in float16"),
        ("f16", _SUM_OF_PRODUCT, "x * y + z", "a compiler may make them one operation"),
        ("f32", _SUM, "tl.exp(tl.log(x + y)) + z", "more than one way"),
    ],
)
def test_other_roundings_are_not_said_to_have_the_same_bits(
    dtype: DType, ops: tuple[Op, ...], body: str, why: str
) -> None:
    found, _ = _checked(dtype, ops, body)
    assert found is not None
    assert why in found


def test_a_maximum_that_drops_nan_is_said_to() -> None:
    assert "NaN" in _checked("f32", _RELU, "tl.maximum(x + y, 0.0)")[1]


def test_a_zero_of_either_sign_is_said_to_come_from_a_maximum() -> None:
    assert (
        _checked("f32", _RELU, "tl.maximum(x + y, 0.0, propagate_nan=tl.PropagateNan.ALL)")[1] == "the sign of a zero"
    )
    assert _checked("f32", _SUM, "x + y + z")[1] == ""


@pytest.mark.parametrize("other", ["exp", "sqrt"])
def test_functions_that_are_computed_in_several_ways(other: str) -> None:
    ops = (_op("a", Kind.ADD, "x", "y"), _op("b", Kind.EXP if other == "exp" else Kind.SQRT, "a"))
    assert _checked("f32", ops, f"tl.{other}(x + y)")[0]


def test_the_laws_that_are_taken_for_granted_hold_in_pytorch() -> None:
    """Rounding is odd and keeps the order; float32 is wide enough that half-precision sums and products are rounded
    once; -1 rounds nothing. On a million numbers, with infinities, NaN, zeros of both signs and denormals."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(1 << 31), (1 << 31) - 1, (1 << 20,), generator=generator, dtype=torch.int64)
    x = bits.to(torch.int32).view(torch.float32)
    x = torch.cat((x, torch.tensor([0.0, -0.0, inf, -inf, nan, 1e-45, -1e-40, 65519.0, 65520.0])))
    y = x[torch.randperm(len(x), generator=generator)]
    for kind in (torch.float16, torch.bfloat16):
        a, b = x.to(kind), y.to(kind)
        assert _equal((-x).to(kind), -a)
        assert _equal(torch.maximum(x, y).to(kind), torch.maximum(a, b))
        for operation in (torch.add, torch.mul):
            assert _equal(operation(a, b), operation(a.float(), b.float()).to(kind))
            assert _equal(operation(a, b), operation(a.double(), b.double()).to(kind))
    assert _equal(x * -1.0, -x)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _checked(dtype: DType, ops: tuple[Op, ...], body: str) -> tuple[str | None, str]:
    kind = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]
    text = _HEAD.format(body=body, kind=kind, n=_N)
    return check_bits(_program(dtype, *ops), text, "launch_kernel", list("xyz"), ["out"], dtype)
