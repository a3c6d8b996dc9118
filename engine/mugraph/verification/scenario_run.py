"""A kernel on inputs of one scenario, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan, prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPUTED
from mugraph.ir.program import TensorProgram
from mugraph.verification.beside_exact import PIECE, Squares, equal, equal_signs
from mugraph.verification.codes import Codes
from mugraph.verification.float_inputs import Drawn, Scenario
from mugraph.verification.float_specials import SPECIALS, trouble
from mugraph.verification.judge import Compared, trouble_by_more
from mugraph.verification.near import Near
from mugraph.verification.pieces import Piece, pieces
from mugraph.verification.placed import in_memory
from mugraph.verification.roundings import EPSILON, SINGLE, TORCH_TYPES
from mugraph.verification.scenario_exact import Beside
from mugraph.verification.scenario_launch import as_tuple, bits, poisoned
from mugraph.verification.unchanged import Unchanged


@dataclass(frozen=True)
class ScenarioResult:
    """Errors are norms relative to the reference's: ||out - ref|| / ||ref||. ulps: how far any element is from what
    eager PyTorch rounds it to, in units in the last place of its type, at most. same_bits, same_but_zeros: as
    float_test.FloatScenario has them"""

    scenario: str
    passed: bool
    reason: str | None
    error: float
    eager_error: float
    ulps: float = nan
    same_bits: bool = False
    same_but_zeros: bool = False


_COMPUTED = frozenset(TORCH_TYPES[dtype] for dtype in COMPUTED)
_DRAWS = 4
"""Of a piece, to begin with."""
_WHOLE = 3
"""Pieces of a program that are all compared with float64; of more, as many."""


@dataclass(frozen=True)
class ScenarioRun:
    """A kernel on inputs of one scenario. order: of its arguments; names: of its outputs; shapes: that it gets and
    returns, with strides, where they are not the program's."""

    program: TensorProgram
    launch: Callable[..., Any]
    order: Sequence[str]
    names: Sequence[str]
    scenario: Scenario
    drawn: Drawn
    shapes: Mapping[str, tuple[Sequence[int], Sequence[int]]]

    def judged(self, twice: bool, generator: torch.Generator) -> ScenarioResult:
        results = self._launched(twice)
        if isinstance(results, str):
            return self._failed(results)
        squares: dict[str, Squares] = {name: Squares() for name in results}
        every = list(pieces(self.program, PIECE, across=True))
        beside = Beside(self.program, self.drawn.inputs, every, generator)
        for piece in self._to_be_judged(every, results, generator):
            if self.scenario in SPECIALS:
                failed = self._judged_by_numbers(piece, results, beside)
            else:
                failed = self._judged(piece, results, squares, beside)
            if failed is not None:
                return failed
        ulps = nan if self.scenario in SPECIALS else max(one.ulps for one in squares.values())
        pairs = [(result, self.drawn.eager[name]) for name, result in results.items()]
        zeros = all(equal(one, other.reshape(one.shape)) for one, other in pairs)
        same = zeros and all(equal_signs(one, other.reshape(one.shape)) for one, other in pairs)
        # Of subnormal numbers a rounding is a large part, as of all results they may have.
        counts = self.scenario not in ("subnormal", *SPECIALS)
        errors = max(one.errors for one in squares.values()) if counts else (nan, nan)
        return ScenarioResult(self.scenario, True, None, *errors, ulps, same, zeros)

    def _to_be_judged(
        self, every: Sequence[Piece], results: Mapping[str, Tensor], generator: torch.Generator
    ) -> Iterator[Piece]:
        """Of a program of gigabytes: a few pieces, then all that are further from eager PyTorch than those."""
        if len(every) <= _WHOLE:
            yield from every
            return
        some = {0, len(every) - 1}
        while len(some) < _WHOLE:
            some.add(int(torch.randint(len(every), (), generator=generator, device=generator.device)))
        near = {name: Near() for name in results}
        for number, piece in enumerate(every):
            if number in some:
                yield piece
                for name, pair in self._beside_eager(piece, results):
                    near[name].add(*pair)
        for number, piece in enumerate(every):
            if number not in some and not all(
                near[name].has(*pair) for name, pair in self._beside_eager(piece, results)
            ):
                yield piece

    def _beside_eager(self, piece: Piece, results: Mapping[str, Tensor]) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
        for name, result in results.items():
            layout = self.program.tensor(name)
            yield name, (piece.of(layout, result), piece.of(layout, self.drawn.eager[name]))

    def _judged(
        self, piece: Piece, results: Mapping[str, Tensor], squares: Mapping[str, Squares], beside: Beside
    ) -> ScenarioResult | None:
        """What is wrong in a piece, if anything. squares: what it adds to them"""
        program = piece.program
        exact = beside.exact(piece)
        mine = {name: piece.of(self.program.tensor(name), result) for name, result in results.items()}
        eager = {name: piece.of(self.program.tensor(name), self.drawn.eager[name]).to(torch.float64) for name in mine}
        for name, result in mine.items():
            squares[name].add(result.to(torch.float64), eager[name], exact[name], result.dtype)
        draws = [beside.drawn(number, piece) for number in range(_DRAWS)]
        for name, result in mine.items():
            if result.dtype not in _COMPUTED:
                trouble = self._judged_as_codes(piece, name, (result, exact[name], eager[name]), beside)
                if trouble is not None:
                    return self._failed(f"{name} {trouble}")
                continue
            even = _even(program) if self.scenario == "normal" else None
            drawn = [draw[name] for draw in draws]
            compared = Compared(result.to(torch.float64), exact[name], eager[name], drawn, result.dtype, even)
            trouble = trouble_by_more(compared, lambda number, name=name: beside.drawn(number, piece)[name])
            if trouble is not None:
                ours, others = squares[name].errors
                told = f"; on the whole by {ours:.2g}, where eager PyTorch is by {others:.2g}" if ours == ours else ""
                return self._failed(f"{name} {trouble}{told}", ours, others)
        return None

    def _judged_as_codes(
        self, piece: Piece, name: str, numbers: tuple[Tensor, Tensor, Tensor], beside: Beside
    ) -> str | None:
        """What is wrong with an output of eight bits. numbers: the kernel's, the exact ones, and eager PyTorch's"""
        result, exact, eager = numbers
        single, ties = beside.single(piece)[name], self.scenario == "ties"
        codes = Codes(result.to(torch.float64), exact, eager, single, result.dtype, ties)
        return codes.trouble(lambda number: beside.far(number, piece)[name])

    def _judged_by_numbers(self, piece: Piece, results: Mapping[str, Tensor], beside: Beside) -> ScenarioResult | None:
        """What is wrong in a piece where some inputs are no numbers, if anything."""
        program = piece.program
        others = beside.without_rows_said(piece)
        for name, exact in beside.exact(piece).items():
            mine = piece.of(self.program.tensor(name), results[name])
            wrong = trouble(program, name, mine, exact, others.get(name))
            if wrong is not None:
                return self._failed(wrong)
        return None

    def _launched(self, twice: bool) -> dict[str, Tensor] | str:
        """Its outputs by name, or what it does that no kernel may."""
        for tensor in self.program.outputs.values():
            if tensor.name not in self.names:  # what is compared is what there is
                return f"the launcher does not return {tensor.name}"
        memory = in_memory(self.program, self.drawn.inputs)
        arguments = [self._argument(name, memory[name]) for name in self.order]
        # Whole buffers, so that writes into gaps and guards show too; compared as bits because they hold NaN.
        unchanged = Unchanged([bits(argument) for argument in arguments])
        with poisoned(), np.errstate(all="ignore"):  # the interpreter computes with numpy
            # What it returned is gone before it runs again.
            kept = [result.clone() for result in as_tuple(self.launch(*arguments))]
            second = as_tuple(self.launch(*arguments)) if twice else kept
        if not unchanged.holds:
            return "the kernel writes to its inputs"
        if len(kept) != len(self.names):
            return f"the launcher returns {len(kept)} tensors, not {len(self.names)}"
        if len(second) != len(kept) or not all(map(torch.equal, map(bits, kept), map(bits, second))):
            return "two runs give different results"
        del second
        for name, result in zip(self.names, kept, strict=True):
            tensor = self.program.tensor(name)
            shape, dtype = tensor.shape(self.program.sizes), TORCH_TYPES[tensor.dtype]
            shape = tuple(self.shapes[name][0]) if name in self.shapes else shape
            if tuple(result.shape) != tuple(shape) or result.dtype != dtype:
                return f"{name} has shape {tuple(result.shape)} and type {result.dtype}"
        program = self.program
        own = {name: program.tensor(name).shape(program.sizes) for name in self.names}
        return {name: result.reshape(own[name]) for name, result in zip(self.names, kept, strict=True)}

    def _argument(self, name: str, tensor: Tensor) -> Tensor:
        if name not in self.shapes or prod(self.shapes[name][0]) != tensor.numel():
            return tensor
        shape, strides = self.shapes[name]
        return tensor.as_strided(tuple(shape), tuple(strides), tensor.storage_offset())

    def _failed(self, reason: str, error: float = nan, eager_error: float = nan) -> ScenarioResult:
        return ScenarioResult(self.scenario, False, f"{reason} ({self.scenario} inputs)", error, eager_error)


def _even(program: TensorProgram) -> float:
    """A relative error that all of an output may share. Tensor cores cut off what they add up."""
    longest = max(
        (prod(program.sizes[a] for a in op.over) for op in program.ops if op.kind.reduces or op.kind.scans), default=1
    )
    on_cores = any(EPSILON[tensor.dtype] > SINGLE for tensor in program.tensors) or any(op.tf32 for op in program.ops)
    cut = longest / 32 if on_cores else longest**0.5
    return SINGLE * (8 + cut)
