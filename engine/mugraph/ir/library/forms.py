"""What block graphs compute in a normal form: two of one form are one function.

    form    = a sum of terms {factors: coefficient}, the coefficients being exact fractions
    factors = {atom: exponent}
    atom    = a loaded tensor; a sum of factors along axes that all of them have; a root of a form; the exponential of
              factors; a form of several terms, which is divided by; or any other operator of forms

Products are multiplied out. A sum leaves out what does not vary along it, and counts it. The exponential of a sum is a
product, so what an exponential is relative to cancels in a quotient. A root is never taken of a square. What is one
function by other laws than these has two forms: a form is compared to find a call, and what is not found is generated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, isfinite, isqrt, lcm, prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes

_MOST_TERMS = 32
_DENOMINATOR = 1 << 24
"""Of a fraction that a constant is read as."""


class Unclear(Exception):
    """It has no form here."""


@dataclass(frozen=True, slots=True)
class Atom:
    """axes: along which it varies. What it is made of: form, of a root, or of terms that are divided by; factors, of a
    sum and where they are summed along, and of an exponential; of, of all others"""

    what: str
    axes: frozenset[str]
    of: tuple[Hashable, ...] = ()
    form: Form = frozenset()
    factors: Factors = frozenset()
    along: frozenset[str] = frozenset()


Factors = frozenset[tuple[Atom, Fraction]]
Form = frozenset[tuple[Factors, Fraction]]
NOTHING: Factors = frozenset()
_ONE = Fraction(1)


class Forms:
    """The arithmetic of forms. sizes: of axes, which sums count"""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def loaded(self, tensor: str, axes: Iterable[str]) -> Form:
        return _of_atom(Atom("load", frozenset(axes), (tensor,)))

    def number(self, value: Fraction) -> Form:
        return _form({NOTHING: value})

    # --- as an Arithmetic

    def constant(self, value: float) -> Form:
        return self.number(read(value))

    def add(self, a: Form, b: Form) -> Form:
        found = dict(a)
        for factors, coefficient in b:
            found[factors] = found.get(factors, Fraction(0)) + coefficient
        return _form(found)

    def mul(self, a: Form, b: Form) -> Form:
        found: Form = frozenset()
        for one, first in a:
            for other, second in b:
                found = self.add(found, self._joined(_times(one, other), first * second))
        return found

    def div(self, a: Form, b: Form) -> Form:
        return self.mul(a, self._inverse(b))

    def sqrt(self, a: Form) -> Form:
        if not a:
            return a
        if len(a) == 1 and (number := dict(a).get(NOTHING)) is not None and number > 0:
            above, below = isqrt(number.numerator), isqrt(number.denominator)
            if Fraction(above, below) ** 2 == number:
                return self.number(Fraction(above, below))
        return _of_atom(Atom("root", _axes(a), form=a))

    def exp(self, a: Form) -> Form:
        found = {Atom("exp", _axes_of(factors), factors=factors): coefficient for factors, coefficient in a}
        return _form({frozenset(found.items()): _ONE})

    def sum(self, a: Form, over: Iterable[str]) -> Form:
        along, found = frozenset(over), dict[Factors, Fraction]()
        for factors, coefficient in a:
            inner = frozenset((atom, power) for atom, power in factors if atom.axes & along)
            own = along & _axes_of(inner)
            coefficient *= prod(self._sizes[axis] for axis in along - own)
            outer = _times(factors - inner, frozenset([(_summed(inner, own), _ONE)])) if inner else factors
            found[outer] = found.get(outer, Fraction(0)) + coefficient
        return _form(found)

    def dot(self, a: Form, b: Form, over: Iterable[str]) -> Form:
        return self.sum(self.mul(a, b), over)

    def maximum(self, a: Form, b: Form) -> Form:
        return _of_atom(Atom("maximum", _axes(a) | _axes(b), (frozenset((a, b)),)))

    def amax(self, a: Form, over: Iterable[str]) -> Form:
        along = frozenset(over)
        return _of_atom(Atom("amax", _axes(a) - along, (along, a)))

    def unary(self, fn: str, a: Form) -> Form:
        return _of_atom(Atom(f"unary {fn}", _axes(a), (a,)))

    def opaque(self, kind: Kind, *operands: Form) -> Form:
        return _of_atom(Atom(f"opaque {kind}", frozenset[str]().union(*map(_axes, operands)), operands))

    def running(self, a: Form, over: Iterable[str], backwards: bool) -> Form:
        raise Unclear

    # --- products and quotients

    def _joined(self, factors: Factors, coefficient: Fraction) -> Form:
        """A term, with pairs of a root and forms that are divided by multiplied out."""
        kept, out = dict[Atom, Fraction](), list[tuple[Form, int]]()
        for atom, power in factors:
            if atom.what == "root" and power not in (0, 1):
                out.append((atom.form, int(power // 2)))
                power %= 2
            elif atom.what == "terms" and power > 0:
                out.append((atom.form, int(power)))
                power = Fraction(0)
            if power:
                kept[atom] = power
        found = _form({frozenset(kept.items()): coefficient})
        for form, times in out:
            for _ in range(abs(times)):
                found = self.mul(found, form if times > 0 else self._inverse(form))
        return found

    def _inverse(self, a: Form) -> Form:
        if not a:
            raise Unclear
        if len(a) > 1:
            shared = frozenset([(_powers(_common(a), -1), 1 / _scale(a))])
            rest = self.mul(a, shared)
            found = frozenset([(frozenset([(Atom("terms", _axes(rest), form=rest), Fraction(-1))]), _ONE)])
            return self.mul(found, shared)
        ((factors, coefficient),) = a
        return self._joined(_powers(factors, -1), 1 / coefficient)


@lru_cache(maxsize=1024)
def read(value: float) -> Fraction:
    """What a constant stands for: a fraction that it rounds from, or the decimal one that is written so."""
    if not isfinite(value):
        raise Unclear
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if float(near) == value else Fraction(repr(value))


def form_of(block: BlockGraph) -> Form | None:
    """What is stored by a block graph without loops that stores one value; None where that is not clear."""
    return _form_of(block.ops, tuple(sorted(block.sizes.items())))


@lru_cache(maxsize=256)
def _form_of(ops: tuple[Op, ...], sizes: tuple[tuple[str, int], ...]) -> Form | None:
    """Remembered: each kernel that might compute it asks, and of one block graph again and again."""
    try:
        return _stored(ops, Forms(dict(sizes)))
    except Unclear:
        return None


def _stored(ops: tuple[Op, ...], forms: Forms) -> Form:
    found: dict[str, Form] = {}
    for op in ops:
        if op.kind is Kind.LOAD:
            found[op.name] = forms.loaded(op.tensor, op.axes)
        elif op.kind is Kind.STORE:
            return found[op.inputs[0]]
        elif op.kind.is_number:
            found[op.name] = forms.constant(op.value)
        elif op.kind.is_elementwise or op.kind.reduces:
            found[op.name] = op.kind.meaning(forms, [found[name] for name in op.inputs], op.fn, op.over)
        else:
            raise Unclear
    raise Unclear


def under_roots(form: Form) -> set[Fraction]:
    """Constants that are added to what roots are taken of."""
    roots = (atom.form for factors, _ in form for atom, _ in factors if atom.what == "root")
    return {dict(inner).get(NOTHING, Fraction(0)) for inner in roots}


def _form(terms: Mapping[Factors, Fraction]) -> Form:
    found = frozenset((factors, coefficient) for factors, coefficient in terms.items() if coefficient)
    if len(found) > _MOST_TERMS:
        raise Unclear
    return found


def _of_atom(atom: Atom) -> Form:
    return frozenset([(frozenset([(atom, _ONE)]), _ONE)])


def _summed(factors: Factors, over: frozenset[str]) -> Atom:
    """The sum of factors that vary along each of the axes."""
    if len(factors) == 1:
        ((atom, power),) = factors
        if atom.what == "sum" and power == 1:
            return Atom("sum", atom.axes - over, factors=atom.factors, along=atom.along | over)
    return Atom("sum", _axes_of(factors) - over, factors=factors, along=over)


def _times(one: Factors, other: Factors) -> Factors:
    found = dict(one)
    for atom, power in other:
        found[atom] = found.get(atom, Fraction(0)) + power
    return frozenset((atom, power) for atom, power in found.items() if power)


def _powers(factors: Factors, by: int) -> Factors:
    return frozenset((atom, by * power) for atom, power in factors)


def _common(form: Form) -> Factors:
    """What all terms are multiples of."""
    first, *rest = (dict(factors) for factors, _ in form)
    least = {atom: min([power, *(one.get(atom, Fraction(0)) for one in rest)]) for atom, power in first.items()}
    shared = {atom: power for atom, power in least.items() if power and all(atom in one for one in rest)}
    return frozenset((atom, power) for atom, power in shared.items() if atom.what not in ("root", "terms"))


def _scale(form: Form) -> Fraction:
    """The largest fraction of which all coefficients are multiples."""
    above, below = 0, 1
    for _, coefficient in form:
        above, below = gcd(above, coefficient.numerator), lcm(below, coefficient.denominator)
    return Fraction(above, below)


def _axes_of(factors: Factors) -> frozenset[str]:
    return frozenset[str]().union(*(atom.axes for atom, _ in factors))


def _axes(form: Form) -> frozenset[str]:
    return frozenset[str]().union(*(_axes_of(factors) for factors, _ in form))
