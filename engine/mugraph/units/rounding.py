"""Where PyTorch rounds: is every call of a search unit one operator of its program, in one type?

What is compared is how values are computed, without the places of their elements: those are compared by other tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.calls import Argument, Call, Ref
from mugraph.ir.dtypes import COMPUTED, DType
from mugraph.ir.ops import Kind, Op
from mugraph.ir.region import SearchUnit

Tree = tuple[object, ...]
"""What a value is computed by, and from what."""

_MOVES = frozenset(
    (
        "view",
        "reshape",
        "permute",
        "transpose",
        "t",
        "T",
        "mT",
        "contiguous",
        "unsqueeze",
        "squeeze",
        "expand",
        "expand_as",
        "flatten",
        "unflatten",
        "narrow",
        "select",
        "swapaxes",
        "movedim",
        "chunk",
        "split",
        "unbind",
        "__getitem__",
        "broadcast_to",
        "view_as",
    )
)
"""Calls that move elements, by the last part of their names."""
_SUMS = frozenset(["add", "add_", "__add__", "__radd__", "__iadd__"])
_DIFFERENCES = frozenset(["sub", "sub_", "__sub__", "__isub__", "subtract"])
_PRODUCTS = frozenset(["mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"])
_COMPUTED_ALIKE = frozenset(["add", "mul", "max", "amax"])
"""Operators that round once or not at all, in PyTorch and in kernels."""
_OF_ONE = {"relu": "relu", "relu_": "relu", "abs": "abs", "__abs__": "abs", "amax": "amax"}


class NotKnown(Exception):
    """It is not known where it rounds; the message says why, in a clause."""


def rounding_type(unit: SearchUnit) -> DType:
    """The type that every value of the unit has, whose program computes call by call what PyTorch computes. Raises
    NotKnown."""
    names = {unit.values[value].dtype for call in unit.calls for value in call.outputs}
    names |= {tensor.dtype for tensor in (*unit.program.tensors, *unit.program.outputs.values())}
    if len(names) > 1:
        raise NotKnown(f"it computes in several types: {', '.join(sorted(names))}")
    every: tuple[DType, ...] = tuple(COMPUTED)
    found: DType | None = next((name for name in every if name in names), None)
    if found is None:
        raise NotKnown("its type is not one that kernels compute with")
    if unit.views or unit.program.least:
        raise NotKnown("a size of it varies" if unit.program.least else "it reads parts of values")
    forms = _Forms()
    called, computed = _of_calls(unit, forms), _of_program(unit, forms)
    for value, tensor in unit.program.outputs.items():
        if called.get(unit.outputs[tensor.name]) != computed[value]:
            raise NotKnown("its program computes in another order than its calls, or in other operations")
    return found


class _Forms:
    """Trees by number: equal ones have one."""

    def __init__(self) -> None:
        self._numbers: dict[Tree, int] = {}
        self._trees: list[Tree] = []

    def of(self, *tree: object) -> int:
        if tree not in self._numbers:
            self._numbers[tree] = len(self._trees)
            self._trees.append(tree)
        return self._numbers[tree]

    def number(self, value: float) -> int:
        return self.minus(self.of("number", -value)) if value < 0 else self.of("number", value)

    def pair(self, name: str, a: int, b: int) -> int:
        return self.of(name, *sorted((a, b)))

    def operation(self, name: str, operands: Sequence[int]) -> int:
        match name, operands:
            case "mul", (a, b):
                return self.product(a, b)
            case _, (a, b):
                return self.pair(name, a, b)
            case _:
                return self.of(name, *operands)

    def product(self, a: int, b: int) -> int:
        one = self.number(-1.0)
        return self.minus(b if a == one else a) if one in (a, b) else self.pair("mul", a, b)

    def minus(self, a: int) -> int:
        match self._trees[a]:
            case ("minus", int() as of):
                return of
            case _:
                return self.of("minus", a)


def _of_calls(unit: SearchUnit, forms: _Forms) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for call in unit.calls:
        tree = _of_call(call, found, forms)
        found.update(dict.fromkeys(call.outputs, tree))
    return found


def _of_call(call: Call, known: Mapping[int, int], forms: _Forms) -> int:
    def of(argument: Argument) -> int:
        match argument:
            case Ref(value):
                return known[value] if value in known else forms.of("value", value)
            case bool() | None:
                raise NotKnown(f"{call.target} takes what is no number")
            case int() | float():
                return forms.number(float(argument))
            case _:
                raise NotKnown(f"{call.target} takes what is no number")

    parts = call.target.split(".")
    name = parts[-2] if parts[-1] == "__get__" else parts[-1]
    if name in _MOVES:
        if any(isinstance(one, Ref) for one in call.args[1:]):
            raise NotKnown(f"{call.target} takes a tensor of places")
        return of(call.args[0])
    if name in _OF_ONE and not set(call.kwargs) - {"dim", "keepdim", "inplace"}:
        return forms.of(_OF_ONE[name], of(call.args[0]))
    if not call.kwargs:
        match call.args:
            case (a, b) if name in _SUMS:
                return forms.pair("add", of(a), of(b))
            case (a, b) if name in _DIFFERENCES:
                return forms.pair("add", of(a), forms.minus(of(b)))
            case (a, b) if name == "__rsub__":
                return forms.pair("add", of(b), forms.minus(of(a)))
            case (a, b) if name in _PRODUCTS:
                return forms.product(of(a), of(b))
            case (a, b) if name == "maximum":
                return forms.pair("max", of(a), of(b))
            case (a,) if name in ("neg", "__neg__", "negative"):
                return forms.minus(of(a))
            case _:
                pass
    raise NotKnown(f"of {call.target} it is not known where every version of PyTorch rounds")


def _of_program(unit: SearchUnit, forms: _Forms) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for op in unit.program.ops:
        found[op.name] = _of_op(op, [found[name] for name in op.inputs], unit, forms)
    return found


def _of_op(op: Op, operands: list[int], unit: SearchUnit, forms: _Forms) -> int:
    if op.f32:
        raise NotKnown("it computes in several types: float32 within")
    match op.kind:
        case Kind.LOAD:
            return forms.of("value", unit.inputs[op.tensor])
        case Kind.CONST:
            return forms.number(op.value)
        case _ if op.kind.name in _COMPUTED_ALIKE:
            return forms.operation(op.kind.name, operands)
        case _ if op.fn in ("relu", "abs"):
            return forms.of(op.fn, *operands)
        case _:
            raise NotKnown(f"of {op.fn or op.kind.name} it is not known where it rounds")
