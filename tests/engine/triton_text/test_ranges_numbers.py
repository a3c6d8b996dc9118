"""Numbers that are not known: what is said of them is true of all that they may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.formulas import All, AtLeastZero, Formula, Not, Some, Zero, every, less, opposite, some
from mugraph.triton_text.ranges.layouts import dense, taken_apart
from mugraph.triton_text.ranges.poly import Poly, atom, multiple, number
from mugraph.triton_text.ranges.prover import Counterexample, Prover
from mugraph.triton_text.ranges.values import Along

NAMES = ("a", "b", "c")
POLYS = st.recursive(
    st.one_of(st.integers(-5, 5).map(number), st.sampled_from(NAMES).map(atom)),
    lambda inner: st.tuples(inner, inner, st.sampled_from("+-*")).map(lambda t: _joined(*t)),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})


def _joined(a: Poly, b: Poly, op: str) -> Poly:
    return a + b if op == "+" else a - b if op == "-" else a * b


def value(poly: Poly, of: dict[str, int]) -> int:
    total = 0
    for monomial, factor in poly.terms:
        for name in monomial:
            factor *= of[name]
        total += factor
    return total


def holds(formula: Formula, of: dict[str, int]) -> bool:
    match formula:
        case AtLeastZero(poly):
            return value(poly, of) >= 0
        case Zero(poly):
            return value(poly, of) == 0
        case All(parts):
            return all(holds(part, of) for part in parts)
        case Some(parts):
            return any(holds(part, of) for part in parts)
        case Not(part):
            return not holds(part, of)


@given(POLYS, POLYS, VALUES)
def test_arithmetic(a: Poly, b: Poly, of: dict[str, int]) -> None:
    x, y = value(a, of), value(b, of)
    assert (value(a + b, of), value(a - b, of), value(a * b, of)) == (x + y, x - y, x * y)
    assert value(a.replaced({"a": b}), of) == value(a, {**of, "a": y})
    found = (a * number(6) * atom("c")).over(number(3) * atom("c"))
    assert found == a * number(2)
    rest = a - multiple(a, atom("b")) * atom("b")
    assert all("b" not in monomial for monomial, _ in rest.terms)


@given(POLYS, POLYS, VALUES)
def test_formulas(a: Poly, b: Poly, of: dict[str, int]) -> None:
    one, other = less(a, b), less(b, a)
    assert holds(one, of) == (value(a, of) < value(b, of))
    assert holds(opposite(one), of) != holds(one, of)
    assert holds(every((one, other)), of) == (holds(one, of) and holds(other, of))
    assert holds(some((one, opposite(other))), of) == (holds(one, of) or not holds(other, of))


@given(st.integers(1, 40), st.integers(1, 16), st.integers(0, 30), st.integers(1, 5))
def test_quotients_are_those_of_whole_numbers(largest: int, divisor: int, more: int, factor: int) -> None:
    """Whatever the facts allow for a quotient is the quotient."""
    atoms = Atoms()
    size = atoms.size("n", 1, largest)
    a = size * number(factor) + number(more)
    q, r = atoms.quotient(a, number(divisor)), atoms.remainder(a, number(divisor))
    prover = Prover()
    for n in {1, largest, (1 + largest) // 2}:
        whole, rest = divmod(n * factor + more, divisor)
        known = [*atoms.facts({*q.atoms, *r.atoms, "n"}), Zero(size - number(n))]
        claim = every((Zero(q - number(whole)), Zero(r - number(rest))))
        assert prover.refuted(known, claim) is None
        assert isinstance(prover.model(known), Counterexample)


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.data())
def test_an_address_is_taken_apart_into_the_indices_it_was_made_of(shape: list[int], data: st.DataObject) -> None:
    sizes = [atom("n") if data.draw(st.booleans()) and at == 0 else number(n) for at, n in enumerate(shape)]
    strides = dense(sizes)
    axes = [Along(f"d{at}", *one) for at, one in enumerate(zip(sizes, strides, strict=True))]
    index = [atom(f"i{at}") for at in range(len(shape))]
    offset = number(0)
    for one, stride in zip(index, strides, strict=True):
        offset = offset + one * stride
    found = taken_apart(offset, axes, {"n": 7})
    assert found == {f"d{at}": one for at, one in enumerate(index)}
