"""What a block graph computes, if it is one attention and nothing else: each operator has its place in it.

softmax(scale * query @ key.T, under a mask) @ value. It is divided by the sum of the exponentials before or after the
second product, which is the same. A mask is the one of as many places as there are (of_places), a tensor that is added
to the scaled logits, or a tensor of truth values. Of what is read the result is made 0 in rows of which nothing is
seen, as PyTorch's attention does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import largest
from mugraph.ir.library.record import multiple_of
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Tensor
from mugraph.kinds.numbers import Numbers

_Function = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class ReadMask:
    """A mask that is a tensor. is_added: to the logits, or it is of truth values. is_said: this part says what a row is
    of which nothing is seen: 0"""

    tensor: Tensor
    is_added: bool
    is_said: bool


@dataclass(frozen=True, slots=True)
class Attention:
    """over: the axes that the first product sums. logits: axes of its result. keys: axes of the sum. places: what the
    exponentials are multiplied by. read: a mask that is loaded"""

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor
    scale: float
    over: frozenset[str]
    logits: frozenset[str]
    keys: frozenset[str]
    places: Op | None
    read: ReadMask | None


@dataclass(frozen=True, slots=True)
class _Logits:
    """mask: the operator that a mask which is read comes from"""

    product: Op
    scale: float
    mask: Op | None = None
    is_added: bool = False


class _Reader:
    """Reads a block graph backwards and remembers which operators it met."""

    def __init__(self, block: BlockGraph) -> None:
        self.block = block
        self._ops = {op.name: op for op in block.ops}
        self.met: set[str] = set()

    @property
    def has_met_all(self) -> bool:
        return len(self.met) == len(self.block.ops)

    def op(self, name: str, *kinds: Kind) -> Op | None:
        op = self._ops.get(name)
        if op is None or op.kind not in kinds:
            return None
        self.met.add(name)
        return op

    def scaled(self, name: str) -> tuple[str, float]:
        """What a value is a multiple of, and how many times."""
        return multiple_of(self._ops, name, self.met)

    def masked(self, name: str) -> tuple[str, Op | None]:
        """What a value is a mask of places of, and the mask."""
        op = self._ops[name]
        if op.kind.absorbing == 0.0 and not op.kind.reduces:
            for one, other in (op.inputs, op.inputs[::-1]):
                mask = self._ops[other]
                if mask.kind.of_places and "columns" in mask.kind.fields:
                    self.met.update((name, other))
                    return one, mask
        return name, None

    def loaded(self, name: str) -> tuple[Tensor, float] | None:
        """The tensor that a value is a multiple of, and how many times."""
        inner, factor = self.scaled(name)
        load = self.op(inner, Kind.LOAD)
        return (self.block.tensor(load.tensor), factor) if load is not None else None

    def logits(self, name: str) -> _Logits | None:
        """The product that an exponential is taken of, its factor, and a mask."""
        inner, scale = self.scaled(name)
        op = self._ops[inner]
        if op.kind.hides:
            self.met.add(inner)
            below, factor = self.scaled(op.inputs[1])
            mask, product = self.op(op.inputs[0], Kind.LOAD), self.op(below, Kind.DOT)
            # Of what a negative number multiplies, infinity would be another one.
            passes = op.kind.opaque is not None and op.kind.opaque.passes_over
            if mask is None or product is None or not passes or not scale > 0:
                return None
            return _Logits(product, scale * factor, mask)
        if op.kind.shifted_by and scale == 1.0:
            self.met.add(inner)
            for one, other in (op.inputs, op.inputs[::-1]):
                below, factor = self.scaled(one)
                mask, product = self.op(other, Kind.LOAD), self.op(below, Kind.DOT)
                if mask is not None and product is not None:
                    return _Logits(product, factor, mask, is_added=True)
            return None
        product = self.op(inner, Kind.DOT)
        return _Logits(product, scale) if product is not None else None

    def kept(self, name: str) -> tuple[str, str]:
        """What a value is where a condition holds (else it is 0), and the condition; "" where there is none."""
        op = self._ops[name]
        if op.kind.opaque is None or not op.kind.opaque.vanishes:
            return name, ""
        self.met.add(name)
        return op.inputs[1], op.inputs[0]

    def says_something_is_seen(self, condition: str, mask: Op, is_added: bool, keys: Collection[str]) -> bool:
        """Is the condition 1 exactly where the mask lets a row see something?"""
        if not is_added:
            return condition == self._most(mask, keys)
        number, most = self._number(condition), self._most(mask, keys)
        if number is None or number[0] != most:
            return False
        # Numbers are compared with one that is not above the least one; so these stand for all.
        return [number[1](x) for x in (-inf, -largest("f32"), -1.0, 0.0, largest("f32"), inf)] == [0.0, *(1.0,) * 5]

    def _most(self, mask: Op, keys: Collection[str]) -> str:
        """The largest element of each row of a mask; "" where it is not there."""
        along = {axis for axis in mask.axes if axis in keys}
        if not along:
            return mask.name
        for op in self.block.ops:
            if op.inputs == (mask.name,) and op.kind.chooses and op.kind.reduces and {*op.over} == along:
                self.met.add(op.name)
                return op.name
        return ""

    def _number(self, name: str) -> tuple[str, _Function] | None:
        """The value that another one is a function of, by constants and one comparison with a number that no float32 is
        below, and the function."""
        op, on = self._ops[name], Numbers()
        is_truth = op.kind.opaque is not None and op.kind.opaque.is_truth
        if not is_truth and not op.kind.scaled_by and not op.kind.shifted_by:
            return None
        numbers = [self._ops[each].value if self._ops[each].kind is Kind.CONST else None for each in op.inputs]
        if len(numbers) != 2 or sum(number is None for number in numbers) != 1:
            return None
        at = numbers.index(None)
        self.met.update((name, op.inputs[1 - at]))
        constant = numbers[1 - at]
        assert constant is not None
        if is_truth and constant > -largest("f32"):
            return None
        below = (op.inputs[at], _same) if is_truth else self._number(op.inputs[at])
        if below is None:
            return None

        def function(x: float, inner: _Function = below[1]) -> float:
            operands = (inner(x), constant) if at == 0 else (constant, inner(x))
            return op.kind.meaning(on, operands, "", ())

        return below[0], function


def _same(x: float) -> float:
    return x


def attention_of(block: BlockGraph) -> Attention | None:
    """What the block graph computes, if it is an attention and nothing else."""
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if block.loops or len(stores) != 1 or sum(op.kind is Kind.DOT for op in block.ops) != 2:
        return None
    reader = _Reader(block)
    reader.met.add(stores[0].name)
    result, condition = reader.kept(stores[0].inputs[0])
    last = reader.op(result, Kind.DIV, Kind.DOT)
    if last is None or last.f32:
        return None
    # (exp / sum) @ value, or (exp @ value) / sum
    inside = last.kind is Kind.DOT
    product = last if inside else reader.op(last.inputs[0], Kind.DOT)
    if product is None or product.f32:
        return None
    loads = [reader.op(name, Kind.LOAD) for name in product.inputs]
    value, rest = (loads[0], product.inputs[1]) if loads[0] is not None else (loads[1], product.inputs[0])
    weights = reader.op(rest, Kind.DIV) if inside else last
    if value is None or weights is None:
        return None
    kept = weights.inputs[0] if inside else rest
    name, places = reader.masked(kept)
    exp, total = reader.op(name, Kind.EXP), reader.op(weights.inputs[1], Kind.SUM)
    if exp is None or total is None or total.inputs != (kept,) or total.over != product.over:
        return None
    logits = reader.logits(exp.inputs[0])
    query, key = (reader.loaded(name) for name in logits.product.inputs) if logits is not None else (None, None)
    if logits is None or query is None or key is None:
        return None
    if logits.mask is None:
        is_read, read = not condition, None
    else:
        # Code that adds a mask by hand has NaN in a row of which nothing is seen, where the call has 0; only PyTorch's
        # attention adds minus infinity for a truth value, and it says 0 itself.
        said = (
            reader.says_something_is_seen(condition, logits.mask, logits.is_added, total.over) if condition else False
        )
        is_read = places is None and (said if condition else not logits.is_added)
        read = ReadMask(block.tensor(logits.mask.tensor), logits.is_added, bool(condition))
    if not is_read or not reader.has_met_all:
        return None
    if not {*total.over} <= {*key[0].axes}:  # a product's operands have no order
        query, key = key, query
    return Attention(
        query[0],
        key[0],
        block.tensor(value.tensor),
        block.tensor(stores[0].tensor),
        logits.scale * query[1] * key[1],
        frozenset(logits.product.over),
        frozenset(logits.product.axes),
        frozenset(total.over),
        places,
        read,
    )
