"""Element-wise arithmetic, with PyTorch's broadcasting, opaque kinds, and the unary functions of `unary.py`."""

from __future__ import annotations

from math import log

from mugraph.ir.calls import Ref
from mugraph.ir.dtypes import INTEGERS
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder, Rule
from mugraph.ops.algebra.complexes import is_complex, product
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.powers import power
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import canonical, lowers
from mugraph.ops.functions.unary import UNARY


def _pair(b: Builder, args: Arguments, dims: AtomDims) -> tuple[Node, Node]:
    """A number that is added to places along an axis is that of the sizes here: masks say what it is at others."""
    tensors = [args.ref(name) for name in ("input", "other") if args.is_ref(name)]
    of_places = all(b.values[one.value].dtype in INTEGERS for one in tensors)
    operand = args.operand if of_places else args.sized
    return b.broadcast(operand("input"), dims), b.broadcast(operand("other"), dims)


def _scaled(b: Builder, args: Arguments, name: str, x: Node, sign: float = 1.0) -> Node:
    """x times the number that an argument says, and a sign."""
    factor = args.factor(name)
    if isinstance(factor, Ref):
        number = b.at(factor, ())
        return b.mul(number if sign > 0.0 else b.mul(b.const(sign), number), x)
    return b.mul(b.const(sign * factor), x)


@lowers(
    "torch.add", "Tensor.add", "Tensor.add_", "Tensor.__add__", "Tensor.__radd__", "Tensor.__iadd__",
    parameters="input other alpha", numbers="other alpha",
)  # fmt: skip
def add(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, y = _pair(b, args, dims)
    return b.add(x, _scaled(b, args, "alpha", y))


@lowers(
    "torch.sub", "torch.subtract", "Tensor.sub", "Tensor.sub_", "Tensor.subtract", "Tensor.__sub__", "Tensor.__isub__",
    parameters="input other alpha", numbers="other alpha",
)  # fmt: skip
def sub(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, y = _pair(b, args, dims)
    return b.add(x, _scaled(b, args, "alpha", y, -1.0))


@lowers("torch.rsub", "Tensor.__rsub__", parameters="input other alpha", numbers="other alpha")
def rsub(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, y = _pair(b, args, dims)
    return b.add(y, _scaled(b, args, "alpha", x, -1.0))


@lowers(
    "torch.mul", "torch.multiply", "Tensor.mul", "Tensor.mul_", "Tensor.multiply", "Tensor.__mul__", "Tensor.__rmul__",
    "Tensor.__imul__", parameters="input other", numbers="other",
)  # fmt: skip
def mul(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, y = _pair(b, args, dims)
    both = all(is_complex(args.operand(name), b.values) for name in ("input", "other"))
    return product(b, x, y) if both else b.mul(x, y)


@lowers(
    "torch.div", "torch.divide", "torch.true_divide", "Tensor.div", "Tensor.div_", "Tensor.divide",
    "Tensor.true_divide", "Tensor.__truediv__", "Tensor.__div__", "Tensor.__itruediv__", "Tensor.__idiv__",
    parameters="input other rounding_mode", numbers="other",
)  # fmt: skip
def div(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if args.has("rounding_mode"):
        raise NotLowerable("a rounded division is outside the fragment")
    return b.div(*_pair(b, args, dims))


@lowers("Tensor.__rtruediv__", "Tensor.__rdiv__", parameters="input other", numbers="other")
def rdiv(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, y = _pair(b, args, dims)
    return b.div(y, x)


@lowers("torch.neg", "torch.negative", "Tensor.neg", "Tensor.neg_", "Tensor.negative", "Tensor.__neg__")
def neg(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.const(-1.0), b.at(args.ref("input"), dims))


@lowers("torch.positive", "Tensor.positive", "Tensor.__pos__")
def positive(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.at(args.ref("input"), dims)


def _raised(b: Builder, base: float, x: Node) -> Node:
    """A number to the power of x."""
    if base <= 0.0:
        raise NotLowerable("a power of a number that is not positive is outside the fragment")
    return b.exp(b.mul(b.const(log(base)), x))


@lowers("Tensor.__rpow__", parameters="input other")
def rpow(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _raised(b, args.number("other"), b.at(args.ref("input"), dims))


@lowers("torch.pow", "Tensor.pow", "Tensor.pow_", "Tensor.__pow__", parameters="input exponent")
def pow_(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    base = args.operand("input")
    if not isinstance(base, Ref):
        return _raised(b, base, b.at(args.ref("exponent"), dims))
    return power(b, b.broadcast(args.ref("input"), dims), args.number("exponent"))


@lowers("torch.square", "Tensor.square", "Tensor.square_")
def square(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return power(b, b.at(args.ref("input"), dims), 2.0)


@lowers("torch.sqrt", "Tensor.sqrt", "Tensor.sqrt_")
def sqrt(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.sqrt(b.at(args.ref("input"), dims))


@lowers("torch.rsqrt", "Tensor.rsqrt", "Tensor.rsqrt_")
def rsqrt(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.div(b.const(1.0), b.sqrt(b.at(args.ref("input"), dims)))


@lowers("torch.exp", "Tensor.exp", "Tensor.exp_")
def exp(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.exp(b.at(args.ref("input"), dims))


@lowers("torch.exp2", "Tensor.exp2", "Tensor.exp2_", "torch.special.exp2")
def exp2(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.exp(b.mul(b.const(log(2.0)), b.at(args.ref("input"), dims)))


@lowers("torch.reciprocal", "Tensor.reciprocal", "Tensor.reciprocal_")
def reciprocal(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.div(b.const(1.0), b.at(args.ref("input"), dims))


@lowers("torch.addcmul", "Tensor.addcmul", "Tensor.addcmul_", parameters="input tensor1 tensor2 value", numbers="value")
def addcmul(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    y = b.mul(b.broadcast(args.ref("tensor1"), dims), b.broadcast(args.ref("tensor2"), dims))
    return b.add(b.broadcast(args.ref("input"), dims), _scaled(b, args, "value", y))


@lowers("torch.addcdiv", "Tensor.addcdiv", "Tensor.addcdiv_", parameters="input tensor1 tensor2 value", numbers="value")
def addcdiv(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    y = b.div(b.broadcast(args.ref("tensor1"), dims), b.broadcast(args.ref("tensor2"), dims))
    return b.add(b.broadcast(args.ref("input"), dims), _scaled(b, args, "value", y))


@lowers("torch.lerp", "Tensor.lerp", "Tensor.lerp_", parameters="input end weight", numbers="weight")
def lerp(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """input + weight * (end - input)."""
    x, end = b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("end"), dims)
    return b.add(x, b.mul(b.broadcast(args.sized("weight"), dims), b.sub(end, x)))


@lowers(
    "torch.nn.functional.dropout", "torch.nn.functional.dropout1d", "torch.nn.functional.dropout2d", "torch.dropout",
    "torch.nn.functional.alpha_dropout", parameters="input p training inplace", shape_only=True,
)  # fmt: skip
def dropout(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Its input, outside training."""
    if args.flag("training", True) and args.number("p", 0.5) != 0.0:
        raise NotLowerable("dropout in training draws random numbers")
    return b.at(args.ref("input"), dims)


_OPERANDS = ("input", "other")


def opaque(kind: Kind) -> Rule:
    """The rule of the calls that are an opaque kind."""
    names = _OPERANDS[: kind.arity]
    return lambda b, args, dims: b.opaque(kind, *(b.broadcast(args.operand(name), dims) for name in names))


for _kind in Kind:
    if _kind.opaque is not None:
        _parameters = " ".join(_OPERANDS[: _kind.arity])
        lowers(*_kind.opaque.targets, parameters=_parameters, truth=_kind.opaque.is_truth)(opaque(_kind))


def _function(args: Arguments) -> str:
    """The entry of `UNARY` whose keywords the call has; what a call leaves out is the plain form."""
    target = canonical(args.call.target)
    said = tuple((name, args.text(name)) for name in ("approximate",) if args.has(name))
    wanted = tuple(pair for pair in said if pair != ("approximate", "none"))
    for function in UNARY.values():
        if target in function.torch and function.keywords == wanted:
            return function.name
    raise NotLowerable(f"{target} with these options is no known function")


@lowers(
    *sorted({target for function in UNARY.values() for target in function.torch}),
    parameters="input inplace approximate",
)
def unary(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.unary(_function(args), b.at(args.ref("input"), dims))
