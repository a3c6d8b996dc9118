"""Recorded arguments as tensors with shapes, and as texts of what is no tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from mugraph.ir.ranges import SizeRange
from mugraph.trace.syntax.shapes import BadShapes, Expression, Spec, TensorSpec, parse_spec


def alike(
    arguments: Mapping[str, str], others: Mapping[str, str], ranges: Sequence[SizeRange], free: Collection[str]
) -> bool:
    """Whether they differ only in sizes that are in one of the ranges, in both, and in what is free to differ."""
    one, two = specs_of(arguments), specs_of(others)
    mine, their = texts_of(arguments), texts_of(others)
    if mine.keys() != their.keys() or one.keys() != two.keys():
        return False
    if any(mine[name] != their[name] for name in mine.keys() - one.keys() if name not in free):
        return False
    pairs = [(one[name], two[name]) for name in one]
    if any((a.dtype, len(a.shape)) != (b.dtype, len(b.shape)) for a, b in pairs):
        return False
    sizes = [(n, m) for a, b in pairs for n, m in zip(a.shape, b.shape, strict=True) if n != m]
    return all(any(of.least <= min(pair) and max(pair) <= of.largest for of in ranges) for pair in sizes)


def specs_of(arguments: Mapping[str, str]) -> dict[str, TensorSpec]:
    """Also of the items of tuples, as of a cache that is given as a pair: `past[0]`."""
    every = (leaf for name, text in arguments.items() for leaf in _leaves(name, spec_of(text)))
    return {name: spec for name, spec in every if isinstance(spec, TensorSpec)}


def texts_of(arguments: Mapping[str, str]) -> dict[str, str]:
    """What is no tensor as it is written, items of tuples by themselves; of tensors nothing is said."""
    every = (leaf for name, text in arguments.items() for leaf in _leaves(name, spec_of(text)))
    return {name: spec.text if isinstance(spec, Expression) else "" for name, spec in every}


def _leaves(name: str, spec: Spec) -> Iterator[tuple[str, TensorSpec | Expression]]:
    if isinstance(spec, tuple):
        for at, one in enumerate(spec):
            yield from _leaves(f"{name}[{at}]", one)
    else:
        yield name, spec


def spec_of(text: str) -> Spec:
    try:
        return parse_spec(text)
    except BadShapes:
        return Expression(text)
