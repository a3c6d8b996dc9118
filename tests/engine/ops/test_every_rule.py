"""Every call that has a rule, with random shapes and arguments: lowered, it computes in float64 what PyTorch does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from mugraph.ir.ops import Kind
from mugraph.ir.region import Argument, Call, Named, Ref, Symbol, TensorInfo
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import known_targets
from mugraph.trace.regions.replay import NotReplayable, function_of, replay
from mugraph.trace.run.triangles import triangle_of
from mugraph.units.lower import lower

from tests.engine.ops.harness import DTYPES, NOWHERE, evaluate, parts, well_formed
from tests.engine.ops.rule_draws import Drawn, Indices, Lower, Rng, T
from tests.engine.ops.rule_pointwise_families import POINTWISE, POINTWISE_BY_TARGET, binary, comparison, positive, unary
from tests.engine.ops.rule_product_families import PRODUCTS
from tests.engine.ops.rule_reduction_families import REDUCTIONS, REDUCTIONS_BY_TARGET
from tests.engine.ops.rule_view_families import VIEWS, VIEWS_BY_TARGET

DRAWS = 12

FAMILIES = POINTWISE | PRODUCTS | REDUCTIONS | VIEWS
BY_TARGET = POINTWISE_BY_TARGET | REDUCTIONS_BY_TARGET | VIEWS_BY_TARGET
COMPLEX = {
    "torch.view_as_complex", "torch.view_as_real", "torch.complex", "torch.polar", "torch.conj", "Tensor.conj",
    "Tensor.real.__get__", "Tensor.imag.__get__",
}  # fmt: skip
"""They have complex results or operands: test_complex.py."""
UNTESTABLE = {"Tensor.double", "Tensor.cuda", "Tensor.long", "Tensor.int", *COMPLEX}
"""They give a type outside the fragment, need a GPU, or round."""
REFUSALS = (
    "the sizes of a view", "a norm that is not Euclidean", "a softmax of one number", "a variance of too few",
    "an output is an input as it is", "a mean in ceil_mode", "a mean that leaves out the places",
    "a maximum over no element", "adaptive pooling whose windows differ",
)  # fmt: skip


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


@dataclass
class Program:
    """A call on fresh tensors, then a product with a probe of the result's shape: no axis can be confused."""

    tensors: list[torch.Tensor]
    calls: list[Call]
    constants: list[int]

    def argument(self, value: Any) -> Argument:
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
            return tuple(self.argument(item) for item in value)
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


def outcome(target: str, rng: Rng, *, whole: bool = True) -> str:
    """whole=False: of a part of its result, or of its halves exchanged"""
    torch.manual_seed(rng.randrange(2**30))
    what = family(target)(rng)
    program = Program([], [], [])
    args = tuple(program.argument(value) for value in what.args)
    kwargs = {name: program.argument(value) for name, value in what.kwargs.items()}
    first, second, last = 100, 101, 102
    if writes(target):
        shapes = [program.tensors[ref.value].shape for ref in args if isinstance(ref, Ref)]
        if torch.broadcast_shapes(*shapes) != shapes[0]:
            return "not in place"
        program.calls.append(Call("Tensor.mul", (args[0], 2.0), {}, (first,), NOWHERE))
        args = (Ref(first), *args[1:])
    outputs = tuple(second if n == what.taken else 200 + n for n in range(what.results)) or (second,)
    program.calls.append(Call(target, args, kwargs, outputs, NOWHERE))
    env = dict(enumerate(program.tensors))
    made = replay(program.calls, env)[second]
    result = second
    if not whole:
        if not made.shape or what.summed:
            return "no part"
        program.calls += a_part(rng, second, made.shape)
        result = 300
        made = replay(program.calls, env)[result]
    env[len(env)] = torch.randn(made.shape).to(torch.float32 if made.dtype == torch.bool else made.dtype)
    program.calls.append(Call("Tensor.mul", (Ref(result), Ref(len(env) - 1)), {}, (last,), NOWHERE))
    if what.summed:
        program.calls.append(Call("torch.sum", (Ref(last),), {}, (last + 1,), NOWHERE))
        last += 1
    results = replay(program.calls, env)
    values = {number: TensorInfo(tuple(t.shape), t.stride(), DTYPES[t.dtype]) for number, t in results.items()}
    for number in program.constants:
        values[number] = replace(values[number], triangle=triangle_of(env[number]))
    live_ins = [Named(f"x{number}", number) for number in env]
    try:
        lowered = lower(program.calls, values, live_ins, [last], "rule")
    except NotLowerable as refusal:
        if whole and not str(refusal).startswith(REFUSALS):
            raise
        return str(refusal)
    well_formed(lowered)
    kept = {number for number, t in env.items() if not t.is_floating_point()}
    wide = {number: t if number in kept | {*program.constants} else t.double() for number, t in env.items()}
    expected = replay(program.calls, wide)[last].double()
    (got,) = evaluate(lowered.program, parts(lowered, wide)).values()
    got = got.reshape(expected.shape)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, msg=lambda text: f"{target} {what}: {text}")
    return "equal"


@pytest.mark.parametrize("target", TARGETS)
def test_part_of_a_result(target: str) -> None:
    """A part of a result is that part of the whole result: a norm's statistics are those of whole rows."""
    rng = random.Random(f"part of {target}")
    seen = Counter(outcome(target, rng, whole=False) for _ in range(DRAWS))
    assert seen["equal"] or set(seen) <= {"no part", "a part of a mask is outside the fragment"}, seen


@pytest.mark.parametrize("target", TARGETS)
def test_rule(target: str) -> None:
    rng = random.Random(target)
    seen = Counter(outcome(target, rng) for _ in range(DRAWS))
    assert seen["equal"] >= 2, seen
