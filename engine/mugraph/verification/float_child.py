"""The process that runs emitted kernels: it may crash, hang or be killed; float_test.py is its other side.

One JSON object a line on standard input, one a line on the descriptor that was standard output (prints of kernels go to
standard error). Start: python -m mugraph.verification.float_child interpreter|cuda
"""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import nan, prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from mugraph import child_log
from mugraph.freed_memory import give_back, keep_freed_memory
from mugraph.ir.dtypes import COMPUTED
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.orphan import end_with_parent
from mugraph.too_little_memory import in_words, is_of_memory
from mugraph.trace.run.tf32 import take
from mugraph.verification.across import Evaluation
from mugraph.verification.beside_exact import PIECE, Squares, equal, equal_signs
from mugraph.verification.codes import Codes, errors_of
from mugraph.verification.draws import Draws, is_small
from mugraph.verification.float_inputs import Drawn, Scenario, make_inputs, scenarios
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_specials import SPECIALS, trouble, without_rows_said
from mugraph.verification.interpreter import patch_interpreter
from mugraph.verification.judge import Compared, trouble_by_more
from mugraph.verification.lowering.run import beside_calls
from mugraph.verification.near import Near
from mugraph.verification.pieces import Piece, pieces
from mugraph.verification.placed import in_memory
from mugraph.verification.roundings import EPSILON, SINGLE, TORCH_TYPES, Perturbed, Single
from mugraph.verification.threads import threads_for
from mugraph.verification.torch_reference import outputs
from mugraph.verification.unchanged import Unchanged

_log = logging.getLogger("mugraph.verification")

_COMPUTED = frozenset(TORCH_TYPES[dtype] for dtype in COMPUTED)
_DRAWS = 4
"""Of a piece, to begin with."""
_WHOLE = 3
"""Pieces of a program that are all compared with float64; of more, as many."""
_KEPT_BYTES = 1 << 30
"""Of the device's memory: what the process may keep for the next kernel, and others cannot have."""
_KEPT_HERE_BYTES = 1 << 29
"""Of the computer's memory, likewise."""


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


def run(request: Mapping[str, Any], device: torch.device, folder: Path) -> list[ScenarioResult]:
    """All scenarios of one request; stops after the first that fails. Raises MemoryError."""
    program = cast(TensorProgram, pickle.loads(base64.b64decode(request["program"])))
    try:
        with threads_for(program):
            return _every_scenario(program, request, device, folder)
    except Exception as error:
        if not is_of_memory(error):
            raise
        whole = len(list(pieces(program, PIECE, across=True))) == 1
        how = "all of it at once, as it has no axis along which it can be cut" if whole else "piece by piece"
        raise MemoryError(f"{in_words(error)} (the program is compared with float64 {how})") from error


def _every_scenario(
    program: TensorProgram, request: Mapping[str, Any], device: torch.device, folder: Path
) -> list[ScenarioResult]:
    take(program.tf32)  # which a library's kernel goes by
    launch = _load(request["module"], request["launcher"], folder, request["number"])
    results: list[ScenarioResult] = []
    for position, scenario in enumerate(scenarios(program)):
        generator = torch.Generator(device).manual_seed(request["seed"] + position)
        drawn = make_inputs(program, scenario, generator)
        if drawn is None:
            continue
        # The interpreter is slow, and as deterministic in one scenario as in the next.
        twice = (device.type == "cuda" and scenario not in SPECIALS) or position == 0
        run_once = _Run(program, launch, request["inputs"], request["outputs"], scenario, drawn, request["shapes"])
        results.append(run_once.judged(twice, generator))
        if not results[-1].passed:
            break
    return results


@dataclass(frozen=True)
class _Run:
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
        beside = _Beside(self.program, self.drawn.inputs, every, generator)
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
        self, piece: Piece, results: Mapping[str, Tensor], squares: Mapping[str, Squares], beside: _Beside
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
        self, piece: Piece, name: str, numbers: tuple[Tensor, Tensor, Tensor], beside: _Beside
    ) -> str | None:
        """What is wrong with an output of eight bits. numbers: the kernel's, the exact ones, and eager PyTorch's"""
        result, exact, eager = numbers
        single, ties = beside.single(piece)[name], self.scenario == "ties"
        codes = Codes(result.to(torch.float64), exact, eager, single, result.dtype, ties)
        return codes.trouble(lambda number: beside.far(number, piece)[name])

    def _judged_by_numbers(self, piece: Piece, results: Mapping[str, Tensor], beside: _Beside) -> ScenarioResult | None:
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
        unchanged = Unchanged([_bits(argument) for argument in arguments])
        with _poisoned(), np.errstate(all="ignore"):  # the interpreter computes with numpy
            # What it returned is gone before it runs again.
            kept = [result.clone() for result in _as_tuple(self.launch(*arguments))]
            second = _as_tuple(self.launch(*arguments)) if twice else kept
        if not unchanged.holds:
            return "the kernel writes to its inputs"
        if len(kept) != len(self.names):
            return f"the launcher returns {len(kept)} tensors, not {len(self.names)}"
        if len(second) != len(kept) or not all(map(torch.equal, map(_bits, kept), map(_bits, second))):
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


@dataclass
class _Beside:
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


def _even(program: TensorProgram) -> float:
    """A relative error that all of an output may share. Tensor cores cut off what they add up."""
    longest = max(
        (prod(program.sizes[a] for a in op.over) for op in program.ops if op.kind.reduces or op.kind.scans), default=1
    )
    on_cores = any(EPSILON[tensor.dtype] > SINGLE for tensor in program.tensors) or any(op.tf32 for op in program.ops)
    cut = longest / 32 if on_cores else longest**0.5
    return SINGLE * (8 + cut)


def _bits(tensor: Tensor) -> Tensor:
    """All of the memory the tensor lies in, as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _as_tuple(result: Any) -> tuple[Tensor, ...]:
    return tuple(cast("Sequence[Tensor]", result)) if isinstance(result, tuple | list) else (cast(Tensor, result),)


@contextmanager
def _poisoned() -> Generator[None]:
    """torch.empty and its kin give memory full of NaN, or of the least whole number: an element that is not written
    shows."""
    names = ("empty", "empty_like", "empty_strided")
    originals: dict[str, Callable[..., Tensor]] = {name: getattr(torch, name) for name in names}

    def poison(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def filled(*args: Any, **kwargs: Any) -> Tensor:
            made = make(*args, **kwargs)
            if made.is_floating_point():
                return made.fill_(float("nan"))
            return made if made.dtype == torch.bool else made.fill_(torch.iinfo(made.dtype).min)

        return filled

    for name, original in originals.items():
        setattr(torch, name, poison(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch, name, original)


def _load(module: str, launcher: str, folder: Path, number: int) -> Callable[..., Any]:
    # Triton reads a kernel's source from its file.
    path = folder / f"kernel_{number}.py"
    path.write_text(module)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded  # torch.library and Triton look modules up by name
    spec.loader.exec_module(loaded)
    return getattr(loaded, launcher)


def _sentence(error: Exception) -> str:
    """CUDA's errors begin with what happened and end with advice; Triton's begin with the source and end with it."""
    if isinstance(error, MemoryError):
        return str(error) or in_words(error)
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0] if lines[0].startswith('CUDA') else lines[-1]}"


def _lowering(request: Mapping[str, Any]) -> LoweringResult:
    """On the processor, whatever the kernels run on."""
    unit = cast(SearchUnit, pickle.loads(base64.b64decode(request["unit"])))
    take(())
    return beside_calls(unit, request["seed"])


def main() -> None:
    end_with_parent()
    keep_freed_memory()
    kind = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    child_log.write()
    device = torch.device("cuda" if kind == "cuda" else "cpu")
    if kind == "interpreter":
        patch_interpreter()
    name = torch.cuda.get_device_name() if kind == "cuda" else "interpreter"
    with tempfile.TemporaryDirectory(prefix="mugraph-float-") as folder:
        for line in sys.stdin:
            request = cast("dict[str, Any]", json.loads(line))
            broken = False
            is_kernel = "module" in request
            try:
                found: Sequence[ScenarioResult | LoweringResult] = ()
                if is_kernel:
                    found = run(request, device, Path(folder))
                elif "unit" in request:
                    found = [_lowering(request)]
                else:
                    torch.cuda.empty_cache()
                results = [asdict(result) for result in found]
                answer: dict[str, Any] = {"results": results, "device": name, "error": None}
            except Exception as error:
                _log.info("a kernel failed" if is_kernel else "recorded calls failed", exc_info=True)
                # An illegal access leaves the CUDA context unusable; the parent starts a fresh process.
                broken = kind == "cuda" and is_kernel
                answer = {"results": [], "device": name, "error": _sentence(error)}
            if kind == "cuda" and not broken and torch.cuda.memory_reserved() > _KEPT_BYTES:
                torch.cuda.empty_cache()
            answers.write(json.dumps({"number": request["number"], "broken": broken, **answer}) + "\n")
            answers.flush()
            if broken:
                return
            give_back(_KEPT_HERE_BYTES)


if __name__ == "__main__":
    main()
