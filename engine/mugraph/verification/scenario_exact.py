"""What a scenario's kernel is compared with: the program in float64, exact and with random errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mugraph.ir.program import TensorProgram
from mugraph.verification.across import Evaluation
from mugraph.verification.beside_exact import PIECE
from mugraph.verification.codes import errors_of
from mugraph.verification.draws import Draws, is_small
from mugraph.verification.float_specials import without_rows_said
from mugraph.verification.pieces import Piece, pieces
from mugraph.verification.roundings import Perturbed, Single
from mugraph.verification.torch_reference import outputs


@dataclass
class Beside:
    """The program's outputs in float64, piece by piece: exact, and drawn with random errors where a right kernel has
    them."""

    program: TensorProgram
    inputs: Mapping[str, Tensor]
    every: Sequence[Piece]
    generator: torch.Generator
    _exact: Evaluation | None = None
    _unsaid: tuple[list[Piece], Evaluation] | None = None
    _draws: dict[int, Evaluation] = field(default_factory=dict[int, Evaluation])
    _far: dict[int, Evaluation] = field(default_factory=dict[int, Evaluation])
    _single: Evaluation | None = None
    _several: Draws | None = None

    def exact(self, piece: Piece) -> dict[str, Tensor]:
        self._exact = self._exact or self._evaluation(None)
        return outputs(piece.program, self._exact.of(piece))

    def single(self, piece: Piece) -> dict[str, Tensor]:
        """As float32 has them."""
        self._single = self._single or Evaluation(self.program, self.inputs, self.every, Single(), self._wanted)
        return outputs(piece.program, self._single.of(piece))

    def far(self, number: int, piece: Piece) -> dict[str, Tensor]:
        """As `drawn`, with errors as results of eight bits may be explained by."""
        if number not in self._far:
            self._far[number] = self._evaluation(errors_of(self.program, self.generator, number))
        return outputs(piece.program, self._far[number].of(piece))

    def without_rows_said(self, piece: Piece) -> dict[str, Tensor]:
        """As float_specials.without_rows_said; nothing where that is None."""
        program = without_rows_said(self.program)
        if program is None:
            return {}
        if self._unsaid is None:
            every = list(pieces(program, PIECE, across=True))
            self._unsaid = every, Evaluation(program, self.inputs, every, None, tuple(program.outputs))
        every, evaluation = self._unsaid
        own = every[self.every.index(piece)]
        return outputs(own.program, evaluation.of(own))

    def drawn(self, number: int, piece: Piece) -> dict[str, Tensor]:
        """Of one number what is reduced over several pieces is the same in all of them."""
        if len(self.every) == 1 and is_small(self.program):
            self._several = self._several or Draws(self.program, self.inputs, Perturbed(self.program, self.generator))
            return self._several.of(number)
        if number not in self._draws:
            self._draws[number] = self._evaluation(Perturbed(self.program, self.generator))
        return outputs(piece.program, self._draws[number].of(piece))

    def _evaluation(self, rounding: Perturbed | None) -> Evaluation:
        return Evaluation(self.program, self.inputs, self.every, rounding, self._wanted)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return tuple(self.program.outputs)
