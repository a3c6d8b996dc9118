"""One random test of how a schedule indexes its tensors at full size: tiles, loops, masks and their ends.

verifier.py shows, at small sizes and with a bound where there is one, that the topology is the same function. The test
here runs all that is cheap to run (samples.py) at the program's own sizes. It gives no bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.parts import in_whole_parts
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.verification.borders import check_memory
from mugraph.verification.compare import Draw, Functions, Rejected, compare
from mugraph.verification.evaluate import Malformed
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.inputs import draw_inputs, mark_no_squares
from mugraph.verification.restrict import places_of, restricted, restricted_block
from mugraph.verification.samples import Sample, samples
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import check_kernels, known_functions, laxness
from mugraph.verification.weights import belongs_to_sizes, weighted, weighted_block


def verify_full_size(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], seed: int | None = None
) -> Verdict:
    """Kernels that run one after the other, at the sizes they have. Never raises for graphs that keep the rules of
    ir/spec."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    program, kernels = in_whole_parts(program, kernels)
    blocks = [block for block, _ in kernels]
    lax, _ = laxness(program.ops, *(block.ops for block in blocks))
    sizes = (dict(program.sizes),)
    try:
        check_kernels(program, blocks)
        check_memory(program, blocks)
        chosen = samples(program, kernels, rng)
        ways = _ways(program, blocks)
        for sample in chosen.runs:
            rejected: Rejected | None = None
            for way in ways:
                rejected = _tested(program, kernels, sample, way, rng)
                if rejected is None:  # what one sample needed, the next ones need
                    ways = [way, *(other for other in ways if other != way)]
                    break
            if rejected is not None:
                return Verdict(False, f"{rejected.reason} (with its own tiles at full size)", lax, 1, sizes)
    except Malformed as error:
        return Verdict(False, str(error), lax, repetitions=1, sizes=sizes)
    said = f"its own tiles, loops and masks run once over the fields, {chosen.said}"
    return Verdict(True, None, lax, repetitions=1, sizes=sizes, bound_note=f"{said}; no bound", indexing=said)


@dataclass(frozen=True)
class _Way:
    """by_form: functions that are computed by their forms. weighted: sums over axes that were made shorter weigh as
    much as at full size (weights.py)"""

    by_form: Functions = frozenset()
    weighted: bool = False


def _ways(program: TensorProgram, blocks: Sequence[BlockGraph]) -> list[_Way]:
    """Ways to take functions, in the order in which verifier.verify_topologies tries them: the cheapest first."""
    functions = known_functions(program, blocks)
    ways = [_Way(known) for known in functions]
    if belongs_to_sizes(program.ops, *(block.ops for block in blocks)):
        ways += [_Way(known, weighted=True) for known in functions[1:] or functions]
    return ways


def _tested(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    sample: Sample,
    way: _Way,
    rng: np.random.Generator,
) -> Rejected | None:
    resized = resize(program, sample.sizes) if _differ(program.sizes, sample.sizes) else program
    blocks = [resize_block(b, sample.sizes) if _differ(b.sizes, sample.sizes) else b for b, _ in kernels]
    if way.weighted:
        resized = weighted(resized, program.sizes)
        blocks = [weighted_block(small, own.sizes) for small, (own, _) in zip(blocks, kernels, strict=True)]
    small = restricted(resized, sample.slices)
    cut = [restricted_block(block, sample.slices) for block in blocks]
    pairs = [(block, schedule) for block, (_, schedule) in zip(cut, kernels, strict=True)]
    draw = _draw(resized, small, sample.slices)
    return compare(small, pairs, rng, 1, way.by_form, draw, once=True)


def _differ(own: Mapping[str, int], sizes: Mapping[str, int]) -> bool:
    return any(sizes[axis] != size for axis, size in own.items())


def _draw(whole: TensorProgram, small: TensorProgram, slices: Mapping[str, tuple[int, int]]) -> Draw:
    """Inputs for a program in slices. Tensors with one source are one piece of memory. One of them may be sliced and
    another not; then the slice is a part of the other's values. Of two parts that overlap, as those of neighbours, both
    are parts of what they have together."""
    parts = _parts(whole, slices)

    def draw(field: FieldArithmetic, rng: np.random.Generator, of_squares: bool) -> Mapping[str, FieldValue]:
        inputs = draw_inputs(small, field, rng, of_squares=of_squares)
        drawn: dict[str, FieldValue] = {}
        for name, part in parts.items():
            if part.together and part.owner not in drawn:
                drawn[part.owner] = field.draw(rng, part.together)
            value = drawn[part.owner] if part.together else inputs[part.owner]
            p = value.p[(slice(None), *part.index)]
            inputs[name] = FieldValue(p, None if value.q is None else value.q[(slice(None), *part.index)])
        if parts and of_squares:
            mark_no_squares(small, inputs, field)
        return inputs

    return draw


@dataclass(frozen=True)
class _Part:
    """Of a tensor: which places of its owner's it has, along each dimension.

    owner:    a tensor of the same source that has all of it; where none has, the first of them
    together: then, of how many places all of them have some; else empty
    """

    owner: str
    index: tuple[NDArray[np.int64], ...]
    together: tuple[int, ...] = ()


def _parts(program: TensorProgram, slices: Mapping[str, tuple[int, int]]) -> dict[str, _Part]:
    """Of tensors that have a source in common with another one, and other places of it."""
    groups: dict[tuple[str, tuple[int, ...]], list[Tensor]] = {}
    for tensor in program.tensors:
        if tensor.source:
            groups.setdefault((tensor.source, tensor.shape(program.sizes)), []).append(tensor)
    found: dict[str, _Part] = {}
    for group in (one for one in groups.values() if len(one) > 1):
        places = {t.name: [places_of(t, i, program.sizes, slices) for i in range(len(t.dims))] for t in group}
        most = max(group, key=lambda tensor: sum(len(one) for one in places[tensor.name])).name
        every = [reduce(np.union1d, along) for along in zip(*places.values(), strict=True)]
        together = () if _are_equal(places[most], every) else tuple(map(len, every))
        for name, own in places.items():
            if together or not _are_equal(own, every):
                index = np.ix_(*(np.searchsorted(all_of, one) for one, all_of in zip(own, every, strict=True)))
                found[name] = _Part(most, index, together)
    return found


def _are_equal(places: Sequence[NDArray[np.int64]], others: Sequence[NDArray[np.int64]]) -> bool:
    return all(np.array_equal(own, other) for own, other in zip(places, others, strict=True))
