"""What tracing finds in a source file: regions, each a DAG of recorded PyTorch calls with exact source ranges.

This is the door between trace and everything after it; it imports neither torch nor the rest of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from mugraph.ir.calls import Argument, Call, Position, Range, Ref, Symbol, TensorInfo, Triangle, operands
from mugraph.ir.memory_order import Order
from mugraph.ir.numbers import number_in
from mugraph.ir.program import TensorProgram
from mugraph.ir.ran import Ran
from mugraph.ir.ranges import DynamicSize, Product
from mugraph.ir.shares import Share

__all__ = [
    "DEVICE",
    "Argument",
    "Call",
    "Named",
    "Part",
    "PlainCalls",
    "Position",
    "Range",
    "Ref",
    "Region",
    "Relaid",
    "SearchUnit",
    "Status",
    "Symbol",
    "TensorInfo",
    "Trace",
    "Triangle",
]  # fmt: skip

DEVICE = Symbol("device")
"""As an argument: the device that the region's live-ins are on, which is what `x.device` was in the user's code."""


@dataclass(frozen=True, slots=True)
class Named:
    """A value crossing the region's border, by the expression that reads or the name that binds it in the source."""

    expression: str
    value: int


@dataclass(frozen=True)
class Relaid:
    """How a region's calls are made where its values lie otherwise in memory than recorded: with copies between.

    calls: in execution order; they compute what the recorded ones do
    of:    number of a value that lies otherwise -> the recorded value
    """

    calls: tuple[Call, ...]
    of: Mapping[int, int]


Status = Literal["improved", "no-gain", "unsupported", "needs-shapes", "failed"]


@dataclass(frozen=True)
class Region:
    """A replacement unit: a run of statements, or one expression, in one function body.

    function:  qualified name ("RMSNormLinear.forward")
    unit:      what `range` covers. For "expression" there is one live-out, whose expression is "". If the last of the
               "statements" is a return, what it returns is the live-out named "return"; of a tuple of tensors there
               is one of that name for each
    text:      the source covered, exactly
    live_ins:  read by the region: locals ("x") and attribute paths ("self.norm.weight"). Each a distinct value.
    live_outs: bound by the region and read after it
    left_none: names that it binds to None, which are read after it
    calls:     in execution order; dead ones are gone
    values:    every value number in calls and live_ins
    guards:    Python expressions over the live-in names that must hold at run time beside the shape, dtype, stride and
               device checks codegen makes itself ("self.drop.training is False", "self.eps == 1e-06"). Their names are
               those that the function has before the region: arguments (`self` too), other locals, globals
    function_args: names the region's function takes (`self` included), so codegen knows what it may refer to
    names:     what the user's code calls some of the values its calls compute ("scores"); not unique, and only a wish
    status:    None for a region to be searched; else why not ("needs-shapes", "unsupported", "failed") with reason
    dynamic:   what varies with a size that was declared with a range; all else here has the largest
    turned:    operands of convolutions that are computed channels last: copies that the user's code does not make
    stored:    numbers of live-ins that are written to after all else, where the user's code writes in between: no other
               live-in has any of their memory, which is tested at run time
    alike_for: whole numbers among its function's arguments, with the least and the largest for which it was traced and
               found to be the same
    times:     that it was executed in the run that was traced
    """

    function: str
    range: Range
    unit: Literal["statements", "expression"]
    text: str
    live_ins: tuple[Named, ...] = ()
    live_outs: tuple[Named, ...] = ()
    calls: tuple[Call, ...] = ()
    values: Mapping[int, TensorInfo] = field(default_factory=dict[int, TensorInfo])
    guards: tuple[str, ...] = ()
    function_args: tuple[str, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict[int, str], compare=False)
    status: Status | None = None
    reason: str | None = None
    dynamic: DynamicSize | None = None
    ran: Mapping[str, Ran] = field(default_factory=dict[str, Ran])
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    called: tuple[str, ...] = ()
    relaid: Relaid | None = None
    turned: frozenset[int] = frozenset()
    left_none: tuple[str, ...] = ()
    stored: frozenset[int] = frozenset()
    alike_for: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"], compare=False)
    times: int = field(default=1, compare=False)

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Live-ins that are numbers which vary from call to call."""
        return frozenset(one.value for one in self.live_ins if number_in(one.expression) is not None)

    @property
    def place(self) -> str:
        """ "Block.forward, line 22"."""
        return f"{self.function}, line {self.range.start.line + 1}"

    @property
    def as_made(self) -> Region:
        """The region whose calls are those that are made."""
        return self if self.relaid is None else replace(self, calls=self.relaid.calls)


@dataclass(frozen=True)
class Trace:
    """All that was found in one file.

    errors:       one clear sentence each (import failed, timed out, raised in forward)
    notices:      likewise, of what is no error and has no region (a comment that is not read where it stands)
    dependencies: the user's other files that ran, by absolute path -> `text_digest` of what they held
    shapes_from:  the user's other files whose runs called this one's functions, by absolute path
    elsewhere:    the user's other files that have regions of the run outside of those here -> their places
    shares:       of a recorded run, that the regions' functions took, by the region's position; not stored with it
    """

    path: str
    regions: tuple[Region, ...] = ()
    errors: tuple[str, ...] = ()
    operators: int = 0
    barriers: Mapping[str, int] = field(default_factory=dict[str, int])
    dependencies: Mapping[str, str] = field(default_factory=dict[str, str])
    notices: tuple[str, ...] = ()
    shapes_from: tuple[str, ...] = ()
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    shares: Mapping[int, Share] = field(default_factory=dict[int, Share])


@dataclass(frozen=True)
class SearchUnit:
    """A search unit: part of a region's DAG as a tensor program. `inputs`/`outputs` tie its tensors to value numbers.

    inputs:  tensor name -> value number (several names may share one)
    outputs: program output's tensor name -> value number
    origins: program operator's name -> positions of the calls it is part of
    apart:   of a unit with several outputs: the units it was joined of, in an order in which they can run
    views:   calls that make those of its inputs that are parts of values: they run before its kernel, and are not
             needed where its calls run instead; view_values: what is known of their results; viewed: of the values
             that they are parts of
    general_views: of a region with a range: what of the views varies with its size
    values:  what is known of all that its calls read and make
    varying: of a region with ranges: axes of the program whose size varies -> what it is of the region's sizes
    laid:    values that it makes, whose dimensions its program has in the order in which they lie in memory -> that
             order
    """

    program: TensorProgram
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    calls: tuple[Call, ...]
    origins: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    apart: tuple[Part, ...] = ()
    views: tuple[Call, ...] = ()
    view_values: Mapping[int, TensorInfo] = field(default_factory=dict[int, TensorInfo])
    viewed: Mapping[int, TensorInfo] = field(default_factory=dict[int, TensorInfo])
    general_views: DynamicSize | None = None
    values: Mapping[int, TensorInfo] = field(default_factory=dict[int, TensorInfo])
    varying: Mapping[str, Product] = field(default_factory=dict[str, Product])
    laid: Mapping[int, Order] = field(default_factory=dict[int, Order])

    def order_of(self, value: int) -> Order:
        """In which its program has the dimensions of a value that it makes and that is known."""
        return self.laid.get(value, tuple(range(len(self.values[value].shape))))

    def known(self, values: Mapping[int, TensorInfo]) -> dict[int, TensorInfo]:
        """Of values, those that its calls read and make."""
        return {value: values[value] for call in self.calls for value in (*operands(call), *call.outputs)}


@dataclass(frozen=True)
class PlainCalls:
    """Calls emitted again as plain PyTorch."""

    calls: tuple[Call, ...]


Part = SearchUnit | PlainCalls
