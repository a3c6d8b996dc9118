"""The homomorphisms that the finite fields are chosen for (Mirage §5)."""

from __future__ import annotations

import numpy as np
from mugraph.search.algebra.field import OMEGA, P, Q, inverse, oracle, power_of_omega, square_root


def test_the_root_of_unity_has_order_q() -> None:
    assert P == 2 * Q + 1
    assert pow(OMEGA, Q, P) == 1
    assert OMEGA % P != 1


def test_exp_turns_sums_into_products() -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, Q, 100), random.integers(0, Q, 100)
    assert (power_of_omega((x + y) % Q) == power_of_omega(x) * power_of_omega(y) % P).all()
    assert int(power_of_omega(np.array([123456789]))[0]) == pow(OMEGA, 123456789, P)


def test_square_roots_multiply_also_off_the_residues() -> None:
    random = np.random.default_rng(0)
    for modulus in (P, Q):
        x, y = random.integers(1, modulus, 100), random.integers(1, modulus, 100)
        product = square_root(x * y % modulus, modulus)
        assert (product == square_root(x, modulus) * square_root(y, modulus) % modulus).all()
        square = square_root(x, modulus) ** 2 % modulus
        assert ((square == x) | (square == modulus - x)).all()
        assert (square == x).any()


def test_inverse_refuses_zero() -> None:
    x = np.array([[3, 5]])
    reciprocal = inverse(x, P)
    assert reciprocal is not None
    assert (x * reciprocal % P == 1).all()
    assert inverse(np.array([3, 0]), P) is None


def test_oracle_is_a_function_of_value_and_salt() -> None:
    x = np.arange(1000)
    assert (oracle(x, 1, P) == oracle(x.copy(), 1, P)).all()
    assert (oracle(x, 1, P) != oracle(x, 3, P)).all()
    assert len(set(oracle(x, 1, P).tolist())) == 1000
