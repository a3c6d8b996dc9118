"""An operator kind: one record that says what the operator is, which every pass asks.

    op.kind.commutes                                   a property
    op.kind.meaning(arithmetic, operands, fn, over)    the result, in whatever the pass computes with

A pass that computes something of every operator (residues, real numbers, abstract expressions, degrees of an
exponential, whether a value is zero) is an `Arithmetic`: a class with one method for each primitive. A kind's meaning
is written once, in terms of these primitives, so that such a pass names no kind. One that they do not express is
`opaque`: every arithmetic has that primitive, and asks the kind's record for what it needs (opaque.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mugraph.kinds.naming import Title
from mugraph.kinds.opaque import Opaque

V = TypeVar("V")


class Role(Enum):
    """What an operator does to axes."""

    LEAF = auto()  # it has no operands
    ELEMENTWISE = auto()  # it has the axes of its operands
    REDUCING = auto()  # it lacks the axes in `over`, of one tile or tensor
    SCANNING = auto()  # it has the axes of its operand, and goes along the one in `over` from one end to the other
    ACCUMULATING = auto()  # it closes a loop
    STORING = auto()


class Arithmetic(Protocol[V]):
    """The primitives. `over`: what is reduced, in the arithmetic's own terms (positions, a prime, names of axes)."""

    def constant(self, value: float, /) -> V: ...
    def add(self, a: V, b: V, /) -> V: ...
    def mul(self, a: V, b: V, /) -> V: ...
    def div(self, a: V, b: V, /) -> V: ...
    def sqrt(self, a: V, /) -> V: ...
    def exp(self, a: V, /) -> V: ...
    def unary(self, fn: str, a: V, /) -> V: ...
    def opaque(self, kind: Kind, /, *operands: V) -> V: ...
    def maximum(self, a: V, b: V, /) -> V: ...
    def amax(self, a: V, over: Any, /) -> V: ...
    def sum(self, a: V, over: Any, /) -> V: ...
    def dot(self, a: V, b: V, over: Any, /) -> V: ...

    def running(self, a: V, over: Any, backwards: bool, /) -> V:
        """The sums of what stands up to each place, itself included; backwards: from each place on."""
        ...


Meaning = Callable[[Any, Sequence[Any], str, Any], Any]
"""(arithmetic, operands, fn, over) -> result; an arithmetic has the primitives that its pass needs."""


@dataclass(frozen=True)
class Accumulator:
    """What joins the parts of a reduction that is split over a loop.

    fn:       of the ACCUM that does
    kind:     reduces along axes as it does over iterations
    joins:    the element-wise kind that joins two parts
    repeated: the one that joins n equal parts, of the part and n; "" where n of them are as one
    neutral:  what it starts from
    shown, symbol: as of a kind
    """

    fn: str
    kind: str
    joins: str
    repeated: str
    neutral: float
    shown: str
    symbol: str


_KINDS: dict[str, Kind] = {}
_ACCUMULATORS: dict[str, Accumulator] = {}


def no_meaning(_on: object, _operands: Sequence[object], _fn: str, _over: object) -> Any:
    raise ValueError("the operator has no meaning here")


class _Noted:
    """An arithmetic that computes nothing and notes the primitives it is asked for, and what of."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        return lambda *operands: self.asked.append((name, operands))


class _Kinds(type):
    """`Kind.ADD` and `for kind in Kind`, by name."""

    if TYPE_CHECKING:  # kinds are attributes; with a method here each look-up of one would take twice as long

        def __getattr__(cls, name: str) -> Kind: ...

    def __iter__(cls) -> Iterator[Kind]:
        return iter(sorted(_KINDS.values(), key=str))


class Kind(metaclass=_Kinds):
    """One object a kind, equal to itself alone; it is pickled and printed by its name.

    It has no order: with one, `kind in (ADD, MUL)` would take twice as long, and a search asks that all the time.

    name:      in the text form and in documents
    role, arity: what it does to axes, and how many operands it takes
    meaning:   see above
    opaque:    ELEMENTWISE, in place of a meaning: nothing is known of it, and it is outside of Mirage's Lax fragment
    fields:    fields of an Op that it must have besides inputs and axes: tensor, value, fn, over, rows
    commutes:  it does not matter which operand is first
    chooses:   the result is one of the operands' elements, by their order: outside of Mirage's Lax fragment (§5)
    scaled_by, shifted_by: places of an operand by which the other one is scaled, or shifted, if it is a constant
    neutral:   of two operands whose order does not matter: a number that leaves the other one as it is
    absorbing: of such operands too: a number that the result is, whatever the other one
    by_inverse: of a quotient the product: the kind that gives the same result for the inverse of the second operand.
               None where there is none
    is_number: LEAF: a number that the program says
    of_places: LEAF: its elements follow from their places along axes, so that it is loaded from nowhere
    is_function: its function is named in the operator's `fn`
    accumulator: REDUCING: finishes it where it is split over a loop
    repeats:   REDUCING: equal elements count each; False where the result is as that of one of them
    adds:      REDUCING: it is a sum, of products or not
    terms:     REDUCING two operands: the element-wise kind of what it adds up
    contracts: REDUCING: it has such terms: a sum of products, which tensor cores compute
    is_plain_sum: REDUCING: it adds, and no products
    backwards: SCANNING: it begins at the last place

    Drawn, named and written:
    shown:     in a drawing, with {0}, {1}, {over}, {tensor}, {fn}, {value}: `max({0}, {1})`
    symbol:    the operator alone: `×`
    of_itself: the symbol where both operands are one
    look:      of its node: "op", "reduce", "matmul"
    title:     of the result in a program: text, put after the first operand's name if it starts with _; or a function
               that makes it from the operator and its operands (naming.py)
    stem:      of the result in a topology that a search found
    juxtaposed: people write it without a symbol, as x y: a result of two of the program's values is called x_y there

    In a search:
    sites:     marks (search/topologies/sites.py) of the first and the second operand that must have a bit in common
    assumed:   a search applies it also to programs that do not have it
    turn:      kinds of a lower one are applied first
    idempotent: of a value and itself it is that value
    instructions: on one element

    In verification (float errors are in units in the last place of a float32):
    ulps:      by which GPUs compute the result besides rounding it
    argument_ulps: by which they compute its argument
    test_cost: of one number in a test over finite fields, in additions

    In a Triton kernel:
    triton:    of an element-wise operator its text, with {0} and {1}; {0:product} is in brackets unless it binds as
               tightly as a product, {0:atom} unless it is in brackets or a name. Of a reduction the function of `tl`.
    negated:   text before an operand if the other one is -1
    inside:    of a kind that rounds to a stored type: its text where the operand is within the type's range
    inverted:  text before a second operand of fewer dimensions that inverts it; the first is multiplied by that. So an
               inverse is computed once for all elements that share it
    of_byte:   of an operator on a whole number and a constant, the text by which it is one on bytes, and its result a
               byte, where these are uint8 and a whole number of eight bits
    constant:  what a constant operand is called there that has no name of its own: "scale", "limit", "offset"
    """

    def __init__(
        self,
        name: str,
        role: Role,
        arity: int,
        *,
        meaning: Meaning = no_meaning,
        opaque: Opaque | None = None,
        fields: Sequence[str] = (),
        commutes: bool = False,
        chooses: bool = False,
        scaled_by: Sequence[int] = (),
        shifted_by: Sequence[int] = (),
        neutral: float | None = None,
        absorbing: float | None = None,
        by_inverse: str = "",
        terms: str = "",
        accumulator: Accumulator | None = None,
        backwards: bool = False,
        shown: str = "",
        symbol: str = "",
        of_itself: str = "",
        look: str = "op",
        title: str | Title = "",
        stem: str = "",
        juxtaposed: bool = False,
        sites: tuple[str, str] = ("anywhere", "anywhere"),
        assumed: bool = False,
        turn: int = 0,
        idempotent: bool = False,
        instructions: int = 1,
        ulps: int = 0,
        argument_ulps: int = 0,
        test_cost: float = 1.0,
        triton: str = "",
        inside: str = "",
        negated: str = "",
        inverted: str = "",
        of_byte: str = "",
        constant: str = "offset",
    ) -> None:
        if name in _KINDS:
            raise ValueError(f"there are two kinds {name}")
        self.name, self.role, self.arity = name, role, arity
        self.meaning: Meaning = meaning if opaque is None else self._of_opaque
        self.opaque, self.fields = opaque, frozenset(fields)
        self.hides = opaque is not None and opaque.hides
        self.jumps, self.stored = opaque is not None and opaque.jumps, "" if opaque is None else opaque.stored
        self.commutes, self.chooses, self.accumulator = commutes, chooses, accumulator
        self.scaled_by, self.shifted_by = tuple(scaled_by), tuple(shifted_by)
        self.neutral, self.absorbing = neutral, absorbing
        self.shown, self.symbol, self.of_itself, self.look = shown, symbol, of_itself, look
        self.title, self.stem, self.juxtaposed = title or name, stem or name, juxtaposed
        self.sites, self.assumed, self.turn = sites, assumed, turn
        self.idempotent, self.instructions = idempotent, instructions
        self.is_leaf, self.is_elementwise = role is Role.LEAF, role is Role.ELEMENTWISE
        self.is_number = self.is_leaf and self.fields == frozenset({"value"})
        self.of_places = self.is_leaf and "rows" in self.fields
        self.ulps, self.argument_ulps, self.test_cost = ulps, argument_ulps, test_cost
        self.triton, self.negated, self.inverted, self.constant = triton, negated, inverted, constant
        self.of_byte, self.inside = of_byte, inside
        self.reduces, self.contracts = role is Role.REDUCING, bool(terms)
        self.repeats = accumulator is None or bool(accumulator.repeated)
        self.adds = self.reduces and self.repeats
        self.is_plain_sum = self.adds and not self.contracts
        self.scans, self.backwards = role is Role.SCANNING, backwards
        self.is_function = "fn" in self.fields and self.is_elementwise
        self._terms, self._by_inverse = terms, by_inverse
        _KINDS[name] = self
        if accumulator is not None:
            _ACCUMULATORS[accumulator.fn] = accumulator
        setattr(Kind, name.upper(), self)

    @cached_property
    def primitives(self) -> frozenset[str]:
        """What its meaning is made of: `"exp" in op.kind.primitives`."""
        return frozenset(name for name, _ in self._noted())

    @cached_property
    def is_composed(self) -> bool:
        """Is it made of several primitives?"""
        return len(self._noted()) > 1

    @cached_property
    def terms(self) -> Kind:
        """Of a kind that contracts."""
        return kind_named(self._terms)

    @cached_property
    def by_inverse(self) -> Kind | None:
        return kind_named(self._by_inverse) if self._by_inverse else None

    def _of_opaque(self, on: Any, of: Sequence[Any], fn: str, over: Any) -> Any:
        return on.opaque(self, *of)

    @cached_property
    def is_exponential(self) -> bool:
        """Is it e to the power of its operand, and nothing else?"""
        return self.primitive == "exp"

    @cached_property
    def primitive(self) -> str:
        """The one that an element-wise kind is, of its operands as they are; "" where it is more than that."""
        noted = self._noted()
        return noted[0][0] if len(noted) == 1 and noted[0][1] == tuple(range(self.arity)) else ""

    def _noted(self) -> list[tuple[str, tuple[object, ...]]]:
        noted = _Noted()
        if self.meaning is not no_meaning:
            self.meaning(noted, range(self.arity), "", ())
        return noted.asked

    def __reduce__(self) -> tuple[Callable[[str], Kind], tuple[str]]:
        return kind_named, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Kind.{self.name.upper()}: '{self.name}'>"


def find_kind(name: str) -> Kind | None:
    return _KINDS.get(name)


def kind_named(name: str) -> Kind:
    """Raises ValueError for a name that no kind has."""
    found = find_kind(name)
    if found is None:
        raise ValueError(f"Invalid enum value {name!r}")
    return found


def accumulators() -> Mapping[str, Accumulator]:
    """By `fn` of an ACCUM."""
    return _ACCUMULATORS


def accumulator(fn: str) -> Accumulator:
    """Raises KeyError where there is none."""
    return _ACCUMULATORS[fn]
