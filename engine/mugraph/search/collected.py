"""Sums of products along the same axes, with what multiplies the same numbers added up first.

Of weights that are taken out of bytes, many more than the inputs they are multiplied by, each is computed by several
operations: the upper half of a byte as (p - p & 15) / 16, and a zero point is subtracted. All that is linear can be
done with the inputs instead, once for all of the outputs:

    sum over k of x[k] * (l[n, k] - z)  +  sum over k of y[k] * ((p[n, k] - l[n, k]) / 16 - z)
        =  sum over k of l[n, k] * (x[k] - y[k] / 16)  +  sum over k of p[n, k] * (y[k] / 16)
           - z * (sum over k of x[k] + y[k])

A weight then costs its conversion and one multiplication. (One row of 4,096 float16 inputs by 14,336 outputs of four
bits, on an H200: instructions are what bounds it. Kernels that were written by hand took 19.7 µs with 6.0 instructions
for each weight, 18.4 with 4.9 and 16.5 with 4.1, in the same tiles. This form has 4.1 to 4.5.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.kinds import kind_named

_ONE = ""
"""The name of the number 1 among the values of a sum."""
_Linear = Mapping[str, float]
"""A sum: values, or the number 1, each with the constant that it is multiplied by."""


def collected(program: TensorProgram) -> TensorProgram | None:
    """The same function; None where nothing is collected."""
    writing = _Writing(program)
    changed = False
    for op in program.ops:
        found = writing.found(op.name)
        if found is None:
            writing.ops[op.name] = op
        else:
            writing.write(op, found)
            changed = True
    return replace(program, ops=used(tuple(writing.ops.values()), program)) if changed else None


def used(ops: tuple[Op, ...], program: TensorProgram) -> tuple[Op, ...]:
    """Those that the outputs are computed from, and all loads."""
    needed = {*program.outputs, *(op.name for op in ops if op.kind is Kind.LOAD)}
    for op in reversed(ops):
        if op.name in needed:
            needed |= {*op.inputs}
    return tuple(op for op in ops if op.name in needed)


class _Writing:
    """ops: of the new program, by name, in order"""

    def __init__(self, program: TensorProgram) -> None:
        self.ops: dict[str, Op] = {}
        self._old = {op.name: op for op in program.ops}
        self._sizes = program.sizes
        self._taken = {*self._old}
        self._products = _sums_of_products(program)

    def found(self, name: str) -> Mapping[str, _Linear] | None:
        """Of a sum of products without rows: what is many, and what each of it is multiplied by, which is fewer; None
        where it is no such sum, or would become no shorter."""
        products = self._products.get(name, ())
        found: dict[str, dict[str, float]] = {}
        fewer: set[tuple[str, ...]] = set()
        for product in products:
            many = self._many(product)
            few = product.inputs[0] if many == product.inputs[1] else product.inputs[1]
            if self._elements(few) >= self._elements(many) or self._has_rows(few, many):
                return None
            fewer.add(self._old[few].axes)
            for value, factor in self._linear(many).items():
                by = found.setdefault(value, {})
                by[few] = by.get(few, 0.0) + factor
        given = {operand for product in products for operand in product.inputs}
        if found.keys() <= given or len(fewer) > 1:
            return None
        varying = [value for value in found if self._varies(value, products[0])]
        if any(self._varies(value, products[0]) is None for value in found) or len(varying) > len(products):
            return None
        return found

    def write(self, root: Op, found: Mapping[str, _Linear]) -> None:
        """Adds the sum to the new program."""
        product = self._products[root.name][0]
        accumulator, terms = product.kind.accumulator, product.kind.terms
        assert accumulator is not None
        assert terms is not None
        in_loop = [(value, by) for value, by in found.items() if self._varies(value, product)]
        is_left = self._many(product) == product.inputs[0]
        parts: list[str] = []
        for value, by in in_loop:
            pair = (value, self._sum(root, product, by))
            parts.append(self._new(root, "of", product, pair if is_left else pair[::-1], product.over))
        summing = replace(product, kind=kind_named(accumulator.kind), tf32="")
        multiplying = replace(product, kind=terms, tf32="")
        totals: dict[str, str] = {}
        for value, by in found.items():
            if (value, by) in in_loop:
                continue
            factor = next(iter(by.values())) if len({*by.values()}) == 1 else 1.0
            few = self._sum(root, product, {one: own / factor for one, own in by.items()})
            if few not in totals:
                totals[few] = self._new(root, "sum", summing, (few,), product.over)
            scaled = self._scaled(root, product, totals[few], factor)
            parts.append(scaled if value == _ONE else self._new(root, "shift", multiplying, (scaled, value)))
        joining = replace(product, kind=kind_named(accumulator.joins), tf32="", f32=root.f32)
        *before, last = parts
        value = last
        for number, part in enumerate(before):
            is_last = number == len(before) - 1
            value = self._new(root, "", joining, (part, value), name=root.name if is_last else "")
        if not before:
            self.ops[root.name] = replace(self.ops.pop(last), name=root.name)

    def _sum(self, root: Op, product: Op, by: _Linear) -> str:
        """The values, each times its constant, added up."""
        accumulator = product.kind.accumulator
        assert accumulator is not None
        joining = replace(product, kind=kind_named(accumulator.joins), tf32="")
        found = ""
        for value, factor in by.items():
            scaled = self._scaled(root, product, value, factor)
            found = self._new(root, "few", joining, (found, scaled)) if found else scaled
        return found

    def _scaled(self, root: Op, product: Op, value: str, factor: float) -> str:
        if factor == 1.0:
            return value
        assert product.kind.terms is not None
        constant = take(numbered(f"{root.name}_factor"), self._taken)
        self.ops[constant] = Op(constant, Kind.CONST, value=factor)
        return self._new(root, "few", replace(product, kind=product.kind.terms, tf32=""), (constant, value))

    def _new(
        self, root: Op, part: str, like: Op, inputs: tuple[str, ...], over: tuple[str, ...] = (), name: str = ""
    ) -> str:
        """Adds an operator of this kind and with these marks."""
        name = name or take(numbered(f"{root.name}_{part}" if part else f"{root.name}_part"), self._taken)
        axes = {axis for one in inputs for axis in self._op(one).axes} - {*over}
        self.ops[name] = replace(like, name=name, inputs=inputs, axes=tuple(sorted(axes)), over=over)
        return name

    def _op(self, name: str) -> Op:
        return self.ops[name] if name in self.ops else self._old[name]

    def _varies(self, value: str, product: Op) -> bool | None:
        """Along the axes that the product sums over? None: along some of them."""
        along = {*product.over} & {*(() if value == _ONE else self._old[value].axes)}
        return None if along and along != {*product.over} else bool(along)

    def _has_rows(self, few: str, many: str) -> bool:
        """Are they more than one for the same of the many? A product of matrices takes them in the program's type then,
        and float16 has too few bits for a sixteenth of its least numbers."""
        return any(self._sizes[axis] > 1 for axis in {*self._old[few].axes} - {*self._old[many].axes})

    def _many(self, product: Op) -> str:
        """The operand that has more elements."""
        return max(product.inputs, key=self._elements)

    def _elements(self, name: str) -> int:
        return prod(self._sizes[axis] for axis in self._old[name].axes)

    def _linear(self, name: str) -> _Linear:
        """The value as a sum of others."""
        op = self._old[name]
        if op.kind is Kind.CONST:
            return {_ONE: op.value}
        found: dict[str, float] = {}
        if op.kind.is_elementwise and op.kind.neutral == 0.0:
            for term in op.inputs:
                for value, factor in self._linear(term).items():
                    found[value] = found.get(value, 0.0) + factor
            return found
        if op.kind.is_elementwise and op.kind.absorbing == 0.0:
            for by, other in (op.inputs, op.inputs[::-1]):
                if self._old[by].kind is Kind.CONST:
                    return {value: factor * self._old[by].value for value, factor in self._linear(other).items()}
        return {name: 1.0}


def _sums_of_products(program: TensorProgram) -> Mapping[str, Sequence[Op]]:
    """Values that add up products along the same axes, or are one such product, and are no part of a larger sum; with
    these products."""
    found: dict[str, tuple[Op, ...]] = {}
    inside: set[str] = set()
    for op in program.ops:
        if op.kind.contracts:
            found[op.name] = (op,)
        elif op.kind.is_elementwise and op.kind.neutral == 0.0 and all(name in found for name in op.inputs):
            products = tuple(product for name in op.inputs for product in found[name])
            if len({(product.kind, product.over, product.tf32) for product in products}) == 1:
                found[op.name] = products
                inside |= {*op.inputs}
    return {name: products for name, products in found.items() if name not in inside}
