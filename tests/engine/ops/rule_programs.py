"""Programs around one call each, for every call that has a rule: with random shapes and arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from mugraph.ir.ops import Kind
from mugraph.ir.region import Argument, Call, Named, Ref, Symbol, TensorInfo
from mugraph.ops.algebra.registry import known_targets
from mugraph.trace.regions.replay import NotReplayable, function_of, replay
from mugraph.trace.run.triangles import triangle_of

from tests.engine.ops.harness import DTYPES, NOWHERE
from tests.engine.ops.rule_draws import Drawn, Indices, Lower, Rng, T
from tests.engine.ops.rule_pointwise_families import POINTWISE, POINTWISE_BY_TARGET, binary, comparison, positive, unary
from tests.engine.ops.rule_product_families import PRODUCTS
from tests.engine.ops.rule_reduction_families import REDUCTIONS, REDUCTIONS_BY_TARGET
from tests.engine.ops.rule_view_families import VIEWS, VIEWS_BY_TARGET

FAMILIES = POINTWISE | PRODUCTS | REDUCTIONS | VIEWS
BY_TARGET = POINTWISE_BY_TARGET | REDUCTIONS_BY_TARGET | VIEWS_BY_TARGET
COMPLEX = {
    "torch.view_as_complex", "torch.view_as_real", "torch.complex", "torch.polar", "torch.conj", "Tensor.conj",
    "Tensor.real.__get__", "Tensor.imag.__get__",
}  # fmt: skip
"""They have complex results or operands: test_complex.py."""
BITS = {"Tensor.__rand__", "Tensor.__rshift__", "Tensor.bitwise_right_shift", "torch.bitwise_right_shift"}
"""They take integers: test_bits_of_integers.py."""
IN_FEW_BITS = {"torch._scaled_mm", "torch._scaled_mm_v2", "torch._grouped_mm"}
"""They take float8 numbers, or bfloat16 ones: test_scaled_products.py, test_grouped_products.py."""
CASTS = frozenset({"Tensor.double", "Tensor.long", "Tensor.int", "Tensor.char", "Tensor.byte"})
"""Whole numbers: test_places.py, test_rounded_to_few_bits.py."""
UNTESTABLE = {"Tensor.cuda", *CASTS, *COMPLEX, *BITS, *IN_FEW_BITS}
"""They give a type outside the fragment, need a GPU, or round."""


def name_of(target: str) -> str:
    return [part for part in target.split(".") if part != "__get__"][-1].strip("_")


def _draws(kind: Kind) -> Callable[[Rng], Drawn]:
    assert kind.opaque is not None
    if kind.opaque.is_truth:
        return comparison
    return binary if kind.arity == 2 else positive if kind.opaque.is_positive else unary


OPAQUE = {target: _draws(kind) for kind in Kind if kind.opaque for target in kind.opaque.targets}


def family(target: str) -> Callable[[Rng], Drawn]:
    return BY_TARGET.get(target) or OPAQUE.get(target) or FAMILIES[name_of(target)]


def exists(target: str) -> bool:
    try:
        function_of(target)
    except NotReplayable:
        return False
    return True


TARGETS = [target for target in known_targets() if target not in UNTESTABLE and exists(target)]


def writes(target: str) -> bool:
    name = target.rpartition(".")[2]
    return (name.startswith("__i") and name != "__invert__") or (name.endswith("_") and not name.endswith("__"))


@dataclass(frozen=True)
class RuleProgram:
    """Calls whose last one makes `output`. tensors: by value number, what they read; constants: of those"""

    drawn: Drawn
    calls: tuple[Call, ...]
    tensors: dict[int, torch.Tensor]
    constants: tuple[int, ...]
    output: int

    @property
    def values(self) -> dict[int, TensorInfo]:
        results = replay(self.calls, {number: tensor.clone() for number, tensor in self.tensors.items()})
        values = {number: TensorInfo(tuple(t.shape), t.stride(), DTYPES[t.dtype]) for number, t in results.items()}
        for number in self.constants:
            values[number] = replace(values[number], triangle=triangle_of(self.tensors[number]))
        return values

    @property
    def live_ins(self) -> list[Named]:
        return [Named(f"x{number}", number) for number in self.tensors]


class _Arguments:
    """Values as arguments of calls; tensors are made of what is drawn."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.constants: list[int] = []

    def of(self, value: Any) -> Argument:
        if isinstance(value, T | Lower | Indices):
            if isinstance(value, Lower):
                self.constants.append(len(self.tensors))
            self.tensors.append(value.make())
            return Ref(len(self.tensors) - 1)
        if isinstance(value, torch.dtype):
            return Symbol(str(value))
        if value is Ellipsis:
            return Symbol("Ellipsis")
        if isinstance(value, tuple | list):
            return tuple(self.of(item) for item in value)
        return value


def a_part(rng: Rng, value: int, shape: torch.Size) -> list[Call]:
    """Calls that take a part of a value, or exchange its halves; the last one's result is 300."""
    dim = rng.randrange(len(shape))
    size = shape[dim]

    def taken(start: int, stop: int, step: int, number: int) -> Call:
        index = (*(slice(None) for _ in range(dim)), slice(start, stop, step))
        return Call("Tensor.__getitem__", (Ref(value), index), {}, (number,), NOWHERE)

    match rng.randrange(4):
        case 0:
            start = rng.randrange(size)
            return [taken(start, rng.randint(start + 1, size), 1, 300)]
        case 1:
            return [taken(rng.randrange(min(2, size)), size, 2, 300)]
        case 2 if size % 2 == 0:
            return [taken(size // 2, size, 1, 300)]
        case _:
            half = max(1, size // 2)
            turned = (Ref(301), Ref(302)) if half < size else (Ref(302),)
            first = [taken(half, size, 1, 301)] if half < size else []
            return [*first, taken(0, half, 1, 302), Call("torch.cat", (turned, dim), {}, (300,), NOWHERE)]


def rule_program(target: str, rng: Rng, *, whole: bool = True) -> RuleProgram | str:
    """A call on fresh tensors, then a product with a probe of the result's shape: no axis can be confused. A string
    says why there is none of it. whole=False: of a part of its result, or of its halves exchanged"""
    torch.manual_seed(rng.randrange(2**30))
    what = family(target)(rng)
    given, calls = _Arguments(), list[Call]()
    args = tuple(given.of(value) for value in what.args)
    kwargs = {name: given.of(value) for name, value in what.kwargs.items()}
    first, second, last = 100, 101, 102
    if writes(target):
        shapes = [given.tensors[ref.value].shape for ref in args if isinstance(ref, Ref)]
        if torch.broadcast_shapes(*shapes) != shapes[0]:
            return "not in place"
        calls.append(Call("Tensor.mul", (args[0], 2.0), {}, (first,), NOWHERE))
        args = (Ref(first), *args[1:])
    outputs = tuple(second if n == what.taken else 200 + n for n in range(what.results)) or (second,)
    calls.append(Call(target, args, kwargs, outputs, NOWHERE))
    tensors = dict(enumerate(given.tensors))
    made = replay(calls, tensors)[second]
    result = second
    if not whole:
        if not made.shape or what.summed:
            return "no part"
        calls += a_part(rng, second, made.shape)
        result = 300
        made = replay(calls, tensors)[result]
    probe = len(tensors)
    has_digits = made.dtype.is_floating_point or made.dtype.is_complex
    tensors[probe] = torch.randn(made.shape).to(made.dtype if has_digits else torch.float32)
    calls.append(Call("Tensor.mul", (Ref(result), Ref(probe)), {}, (last,), NOWHERE))
    if what.summed:
        calls.append(Call("torch.sum", (Ref(last),), {}, (last + 1,), NOWHERE))
        last += 1
    return RuleProgram(what, tuple(calls), tensors, tuple(given.constants), last)
