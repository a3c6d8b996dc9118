"""Finds out whether code decides by a size. The code is run once with a symbol in place of the size.

Traces at a few sizes cannot see `if x.shape[0] == 17`. PyTorch's symbolic shapes can: whatever the code, or an operator
in it, asks about the size becomes a guard. A guard that holds at one size of the range and not at another is a branch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from traceback import FrameSummary, extract_tb
from typing import Any, cast

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from mugraph.ir.ranges import Compared, Point, Product, SizeRange, largest_point, product_of
from mugraph.trace.run.around import as_recorded
from mugraph.trace.run.build import Builder
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.data_sizes import DataSizes, SizesOfData
from mugraph.trace.run.devices import OneDevice
from mugraph.trace.run.entries import Entry
from mugraph.trace.run.gpu_answers import answering
from mugraph.trace.run.grad_mode import GradMode
from mugraph.trace.run.numbers_seen import NumbersSeen
from mugraph.trace.run.parts import Parts
from mugraph.trace.run.places import Places
from mugraph.trace.run.square_roots import symbolic_roots
from mugraph.trace.run.values import DTYPE_NAMES
from mugraph.trace.run.without_numbers import WithoutNumbers
from mugraph.trace.syntax.shapes import Expression, Spec, TensorSpec

_EACH = 16
"""Every so many of these sizes, numbers that are computed from them are looked at."""
MOST = 4096
"""Sizes of a range at which guards are looked at; of a longer one, evenly many."""


@dataclass
class _Symbols:
    """Symbols of sizes that come of data: of counts one for each number that is read, all of which are one size.

    products: takes them, with what they are
    """

    shapes: ShapeEnv
    sizes: Sequence[SizeRange]
    products: dict[object, Product]
    known: dict[tuple[str, int], object] = field(default_factory=dict[tuple[str, int], object])
    made: set[object] = field(default_factory=set[object])

    def of(self, size: SizeRange, at: int) -> object:
        if size not in self.sizes:
            return size.largest
        if (size.name, at) not in self.known:
            source = ConstantSource(f"{size.name}_{at}")
            symbol: Any = self.shapes.create_symbol(size.largest, source, dynamic_dim=DimDynamic.DYNAMIC)
            self.products[symbol] = Product(1, (size.name,))
            self.made.add(symbol)
            self.known[size.name, at] = self.shapes.create_symintnode(symbol, hint=size.largest, source=source)
        return self.known[size.name, at]

    def is_of_several(self, guard: Any) -> bool:
        """Is it about several such numbers? Of these it is known that together they are no more than there is."""
        return len(self.made & guard.expr.free_symbols) > 1


@dataclass
class _SymbolicBuilder(Builder):
    """given: tensor arguments and whole numbers that are there already, by the ids of what is said of them."""

    given: Mapping[int, object] = field(default_factory=dict[int, object])

    def value(self, spec: Spec) -> object:
        made = self.given.get(id(spec))
        return made if made is not None else super().value(spec)


def decided_at(entry: Entry, others: Sequence[tuple[Point, Entry]], places: Places, of_data: SizesOfData) -> str | None:
    """Why the code does not do the same at all sizes, as the end of a sentence; None if it does. Size 1 is left aside:
    PyTorch always treats it as a case of its own.

    entry:  the code with the largest sizes
    others: the same with other ones, which are told beside it
    places: of the user's file, whose lines are named
    of_data: sizes that come of data, which the entry's are beside those that its comment gives a range
    """
    path = places.traced
    shapes = ShapeEnv()
    mode = WithoutNumbers(allow_non_fake_inputs=True, shape_env=shapes)
    constants = Constants(real=False)
    try:
        products: dict[object, Product] = {}
        given: dict[int, object] = {
            id(spec): _tensor(spec, dims, mode, products) for spec, dims in _varying(entry, others)
        }
        for name, of in varying_numbers(entry, others).items():
            spec = entry.arguments[name]
            given[id(spec)] = _number(int(cast(Expression, spec).text), of, mode, products)
        builder = _SymbolicBuilder(places, mode, constants, given=given)
        symbols = _Symbols(shapes, entry.sizes, products)
        with (
            torch.no_grad(),
            OneDevice(),
            DataSizes(of_data, constants, symbols.of),
            constants,
            answering(entry.on_gpu),
        ):
            with GradMode().without_inference():
                ready = builder.ready(entry)
            numbers = cache(lambda: [_values(products, point) for point in _points(entry.sizes)])
            seen = NumbersSeen()
            with (
                builder.within(), as_recorded(ready.around), GradMode().without_inference(), enable_python_dispatcher(),
                symbolic_roots(), Parts(numbers), seen,
            ):  # fmt: skip
                ready.function(*ready.args, **ready.kwargs)
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        frames = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == path]
        where = f", line {frames[-1]}" if frames else ""
        return f"PyTorch cannot follow the code without knowing the size ({line[:120]}{where})"
    if strange := seen.other_numbers(
        [largest_point(entry.sizes), *(point for point, _ in others)], products, [*_points(entry.sizes)][::_EACH]
    ):
        return strange
    guards = [guard for guard in cast("Sequence[Any]", shapes.guards) if not symbols.is_of_several(guard)]
    for point in _points([one.whole for one in entry.sizes]):
        values = _values(products, point)
        broken = next(
            (
                guard
                for guard in guards
                if guard.expr.xreplace(values) is sympy.false and not _is_at_the_least(guard, products, entry, point)
            ),
            None,
        )
        if min(point.values()) > 1 and broken is not None:
            at, where = Compared(entry.sizes, point), _line(broken, path)
            return f"the code does something else with {at.here} than with {at.largest_briefly}{where}"
    return None


def _is_at_the_least(guard: Any, products: Mapping[object, Product], entry: Entry, point: Point) -> bool:
    """Does it ask about sizes that are the least here? With all of these together the code is traced, and what it does
    then is compared with what it does elsewhere. So is `x[:, 1:]` of two rows, which has a dimension of size 1: PyTorch
    treats that as a case of its own."""
    least = {one.name: one.least for one in entry.sizes}
    known = [products[symbol] for symbol in guard.expr.free_symbols if symbol in products]  # others are strides
    asked = {name for of in known for name in of.sizes}
    return all(point[name] == least[name] for name in asked)


def _values(products: Mapping[object, Product], point: Point) -> dict[object, int]:
    """Of the symbols."""
    return {symbol: of.at(point) for symbol, of in products.items()}


def _line(guard: Any, path: str) -> str:
    """ " (line 6)", where PyTorch has kept what asked about the size, and it stands in the user's file."""
    place = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    return f" (line {place.lineno})" if isinstance(place, FrameSummary) and place.filename == path else ""


def _points(ranges: Sequence[SizeRange]) -> Iterator[Point]:
    """All the sizes of one range, up to MOST; of several, those of each while the others are the largest, the sizes of
    all in step, and as many that are drawn at random."""
    largest, each = largest_point(ranges), MOST // len(ranges)
    for one in ranges:
        for size in (*range(one.least, one.largest, max(1, (one.largest - one.least) // each)), one.largest):
            yield {**largest, one.name: size}
    if len(ranges) > 1:
        rng = random.Random(0)
        yield from ({one.name: max(one.least, min(size, one.largest)) for one in ranges} for size in range(2, 66))
        yield from ({one.name: rng.randint(one.least, one.largest) for one in ranges} for _ in range(each))


def _tensor(
    spec: TensorSpec,
    dims: Mapping[int, Product],
    mode: FakeTensorMode,
    products: dict[object, Product],
) -> torch.Tensor:
    """Without contents, some of its dimensions symbols. products: takes the symbols, with what they are"""
    dtype = DTYPE_NAMES[spec.dtype]
    real = torch.empty(spec.shape, dtype=dtype)
    if spec.strides is not None:
        real = torch.empty_strided(spec.shape, spec.strides, dtype=dtype)
    kinds = [DimDynamic.DYNAMIC if at in dims else DimDynamic.STATIC for at in range(len(spec.shape))]
    context: Any = cast(Any, StatelessSymbolicContext)(dynamic_sizes=kinds)
    made = mode.from_tensor(real, symbolic_context=context, source=ConstantSource(f"argument_{id(spec)}"))
    for at, of in dims.items():
        symbol: Any = made.shape[at]
        products[symbol.node.expr] = of
    return made


def _number(value: int, of: Product, mode: FakeTensorMode, products: dict[object, Product]) -> object:
    """A symbol, as a size of a tensor that nothing else knows. products: as `_tensor` takes it"""
    return _tensor(TensorSpec("u8", (value,)), {0: of}, mode, products).shape[0]


def varying_numbers(entry: Entry, others: Sequence[tuple[Point, Entry]]) -> dict[str, Product]:
    """Whole numbers among the arguments that vary with the sizes, with what each is.

    others: as `decided_at` takes them
    """
    points = [largest_point(entry.sizes), *(point for point, _ in others)]
    found: dict[str, Product] = {}
    for name, spec in entry.arguments.items():
        texts = [one.text for each in (entry, *(other for _, other in others)) if (one := _expression(each, name))]
        if isinstance(spec, Expression) and len(texts) == len(points) and all(text.isdecimal() for text in texts):
            of = product_of([int(text) for text in texts], points)
            found |= {name: of} if of else {}
    return found


def _expression(entry: Entry, name: str) -> Expression | None:
    spec = entry.arguments.get(name)
    return spec if isinstance(spec, Expression) else None


def _varying(entry: Entry, others: Sequence[tuple[Point, Entry]]) -> Iterator[tuple[TensorSpec, Mapping[int, Product]]]:
    """Tensor arguments with dimensions that vary."""
    points = [largest_point(entry.sizes), *(point for point, _ in others)]
    groups: list[tuple[Spec, ...]] = [
        *zip(entry.arguments.values(), *(other.arguments.values() for _, other in others), strict=True)
    ]
    while groups:
        one, *rest = groups.pop()
        specs = [two for two in rest if isinstance(two, TensorSpec)]
        if isinstance(one, TensorSpec) and len(specs) == len(rest):
            dims = [*zip(one.shape, *(two.shape for two in specs), strict=True)]
            varying = {at: product_of(sizes, points) for at, sizes in enumerate(dims)}
            if found := {at: of for at, of in varying.items() if of}:
                yield one, found
        elif isinstance(one, tuple) and all(isinstance(two, tuple) for two in rest):
            groups += zip(one, *(two for two in rest if isinstance(two, tuple)), strict=True)
