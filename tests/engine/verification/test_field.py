"""Field arithmetic against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ops.functions.by_sign import MAX
from mugraph.verification import modular
from mugraph.verification.field import FieldArithmetic, FieldValue, P, Q

residue_p, residue_q = st.integers(0, P - 1), st.integers(0, Q - 1)
pairs = st.tuples(residue_p, residue_q)
primes = st.sampled_from([P, Q])


def value(*pairs: tuple[int, int]) -> FieldValue:
    return FieldValue(np.array([p for p, _ in pairs]), np.array([q for _, q in pairs]))


def one_seed(seed: int = 0) -> FieldArithmetic:
    return FieldArithmetic(np.random.default_rng(seed), 1)


def test_the_fields_are_what_theorem_2_asks_for() -> None:
    assert P == 2 * Q + 1
    assert P % 4 == Q % 4 == 3
    for small in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 43, 67, 71, 73, 83, 97):
        assert pow(small, (P - 1) // 2, P) == pow(small, (Q - 1) // 2, Q) == 1
    for prime in (P, Q):
        assert all(prime % d for d in range(2, int(prime**0.5) + 1))


@given(pairs, pairs)
@settings(max_examples=200, deadline=None)
def test_ring(a: tuple[int, int], b: tuple[int, int]) -> None:
    field = one_seed()
    total, product = field.add(value(a), value(b)), field.mul(value(a), value(b))
    assert total.q is not None
    assert product.q is not None
    assert (int(total.p[0]), int(total.q[0])) == ((a[0] + b[0]) % P, (a[1] + b[1]) % Q)
    assert (int(product.p[0]), int(product.q[0])) == (a[0] * b[0] % P, a[1] * b[1] % Q)


@given(st.lists(st.integers(0, Q - 1), min_size=1, max_size=150), primes)
@settings(max_examples=60, deadline=None)
def test_inverses(xs: list[int], prime: int) -> None:
    found = modular.inverse(np.array(xs, np.int64), prime)
    assert found.tolist() == [pow(x, -1, prime) if x else 0 for x in xs]


@given(residue_q, st.integers(1, P), primes)
@settings(max_examples=60, deadline=None)
def test_powers(x: int, exponent: int, prime: int) -> None:
    assert int(modular.power(np.array([x], np.int64), exponent, prime)[0]) == pow(x, exponent, prime)


@given(residue_q, residue_q, primes)
@settings(max_examples=60, deadline=None)
def test_square_roots(x: int, y: int, prime: int) -> None:
    def root(v: int) -> int:
        return int(modular.square_root(np.array([v], np.int64), prime)[0])

    square = x * x % prime
    assert root(square) ** 2 % prime == square
    assert root(x * y % prime) == root(x) * root(y) % prime
    assert bool(modular.is_square(np.array([x], np.int64), prime)[0]) == (root(x) ** 2 % prime == x)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), primes, st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_matmul(m: int, k: int, n: int, prime: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, prime, (2, m, k)), rng.integers(0, prime, (2, k, n))
    expected = np.matmul(a.astype(object), b.astype(object)) % prime
    assert (modular.matmul(a, b, prime) == expected).all()


def test_matmul_of_the_largest_residues_is_exact() -> None:
    a = np.full((1, 5000), P - 1, np.int64)
    assert int(modular.matmul(a, a.T.copy(), P)[0, 0]) == 5000 % P


@pytest.mark.parametrize("terms", [127, 128, 129, 1000])
def test_sums_of_the_largest_halves_are_exact(terms: int) -> None:
    """Of one sign: a half is at most 2^15 around zero, and a residue is below 2^31."""
    a = np.full((30, terms), P - 1, np.int64)
    worst = [P - 1, (1 << 15) - 1, 1 << 15, (1 << 30) + (1 << 15), P - (1 << 15), ((1 << 15) - 1) << 16 | 0x7FFF]
    b = np.stack([np.full(terms, value) for value in worst * 4], -1) % P
    expected = np.matmul(a.astype(object), b.astype(object)) % P
    assert (modular.matmul(a, b, P) == expected).all()
    assert (modular.matmul(b.T, a.T, P) == expected.T).all()


@pytest.mark.parametrize("columns", [1, 16, 17, 40])
@pytest.mark.parametrize("terms", [255, 4096, 4097, 9000])
def test_sums_of_the_largest_parts_are_exact(columns: int, terms: int) -> None:
    """Residues around zero whose parts are as large as they get, all of one sign, beside random ones."""
    rng = np.random.default_rng(terms)
    parts = 1 + (1 << 11) + (1 << 22)
    worst = [P // 2, P // 2 + 1, P - (parts << 10) % P, (parts * 1023) % P, P - (parts << 7), (1 << 26) - 1, P - 1]
    b = np.stack([np.full(terms, value, np.int64) for value in (worst * columns)[:columns]], 1)
    b[:, columns // 2 :] = np.where(rng.random(terms) < 0.5, b[:, columns // 2 :].T, rng.integers(0, P, terms)).T
    a = np.concatenate(
        [np.full((1, terms), P - 1), rng.integers(0, P, (69, terms)), rng.integers(P - 9, P, (1, terms))]
    )
    for left, right in ((a, b), (b.T, a.T)):
        expected = np.matmul(left.astype(object), right.astype(object)) % P
        assert (modular.matmul(left, right, P) == expected).all()


def test_a_large_dot_agrees_with_a_small_one() -> None:
    """Beyond a size dots go to the limb matmul; both ways give the same."""
    rng = np.random.default_rng(3)
    # Positions: repetition, batch, row, reduced, column.
    a, b = rng.integers(0, P, (1, 3, 40, 80, 1)), rng.integers(0, P, (1, 3, 1, 80, 50))
    found = modular.dot(a, b, (3,), P)
    expected = (a.astype(object) * b.astype(object)).sum(3, keepdims=True) % P
    assert found.shape == (1, 3, 40, 1, 50)
    assert (found == expected).all()


@given(residue_q, residue_q, st.integers(0, 100), st.sampled_from([1, 5]))
@settings(max_examples=60, deadline=None)
def test_exp_turns_sums_into_products(x: int, y: int, seed: int, repetitions: int) -> None:
    field = FieldArithmetic(np.random.default_rng(seed), repetitions)

    def exp(v: int) -> FieldValue:
        return field.exp(FieldValue(np.full((repetitions, 1), v), np.full((repetitions, 1), v)))

    product = field.mul(exp(x), exp(y))
    assert product.q is None
    assert (product.p == exp((x + y) % Q).p).all()
    # A q-th root of unity.
    assert (modular.power(exp(x).p, Q, P) == 1).all()
    assert not field.second_exp
    field.exp(product)
    assert field.second_exp


def test_constants_keep_their_identities() -> None:
    field = FieldArithmetic(np.random.default_rng(1), 3)
    assert (field.constant(3.0, 1).p == 3).all()
    assert (field.constant(-1.0, 1).p == P - 1).all()
    odd, again = field.constant(0.123456789012345, 1), field.constant(0.123456789012345, 1)
    assert (odd.p == again.p).all()
    assert len(set(odd.p.reshape(-1).tolist())) == 3
    tenth = field.constant(0.1, 1)
    assert (field.mul(tenth, field.constant(10.0, 1)).p == 1).all()
    assert (field.add(tenth, field.constant(-0.1, 1)).p == 0).all()
    two = field.constant(2.0, 1)
    assert (field.mul(two, field.constant(-0.5, 1)).p == P - 1).all()
    for other in (tenth, odd):
        root = field.sqrt(other)
        assert (field.mul(root, root).p == other.p).all()
    assert (field.mul(two, odd).p == field.constant(2 * 0.123456789012345, 1).p).all()
    assert (field.constant(0.0, 1).p == 0).all()


@given(st.sampled_from([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 271, 1187]), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_the_root_of_a_square_is_the_positive_number(prime: int, power: int) -> None:
    field = FieldArithmetic(np.random.default_rng(1), 3)
    number = float(prime**power)
    for value in (number, 1 / number):
        element = field.constant(value, 0)
        root = field.sqrt(field.mul(element, element))
        assert root.q is not None
        assert element.q is not None
        assert (root.p == element.p).all()
        assert (root.q == element.q).all()


def test_oracles_agree_on_equal_arguments_only() -> None:
    field = FieldArithmetic(np.random.default_rng(1), 2)
    x = field.draw(np.random.default_rng(2), (50,))
    once, twice, other = field.unary("silu", x), field.unary("silu", x), field.unary("tanh", x)
    assert (once.p == twice.p).all()
    assert (once.p != other.p).all()
    assert len(np.unique(once.p)) == 100


def test_a_zero_denominator_rejects_its_seed() -> None:
    field = FieldArithmetic(np.random.default_rng(1), 2)
    one = FieldValue(np.ones((2, 1), np.int64), None)
    field.div(one, FieldValue(np.array([[0], [5]]), None))
    assert field.valid.tolist() == [False, True]


@pytest.mark.parametrize("by_form", [frozenset[str](), frozenset({MAX})])
@pytest.mark.parametrize(("shape", "over"), [((2, 5, 3, 4), (1, 3)), ((40, 3), (1,)), ((3, 40), (1, 2)), ((3, 2), ())])
def test_the_last_of_several_positions(by_form: frozenset[str], shape: tuple[int, ...], over: tuple[int, ...]) -> None:
    """Both residues of one element, the first of those that are equal."""
    rng = np.random.default_rng(7)
    field = FieldArithmetic(rng, 4, by_form=by_form)
    drawn = field.draw(rng, shape)
    again = np.where(rng.random(drawn.p.shape) < 0.3, drawn.p[:, :1], drawn.p)
    values = FieldValue(again, drawn.q)
    found = field.amax(values, over)
    assert found.q is not None
    assert values.q is not None
    where = field.places(values)
    kept = [at for at in range(len(shape) + 1) if at not in over]
    flat, p, q = (np.moveaxis(one, kept, range(len(kept))).reshape([one.shape[at] for at in kept] + [-1])
                  for one in (where, values.p, values.q))  # fmt: skip
    index = flat.argmax(-1, keepdims=True)
    assert (found.p.reshape(index.shape) == np.take_along_axis(p, index, -1)).all()
    shared = np.take_along_axis(p, index, -1) == p
    assert (shared & (q == found.q.reshape(index.shape))).any(-1).all()
