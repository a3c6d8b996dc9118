"""Is a search unit's tensor program what its recorded calls compute? The calls are run, and the program is evaluated,
on the same numbers. This is the side that may take long, or die: float_child.py runs it, check.py asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod

import torch
from torch import Tensor

from mugraph.ir.calls import is_inplace
from mugraph.ir.region import SearchUnit
from mugraph.trace.regions.replay import NotReplayable, replay
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.looked_up import gathered
from mugraph.verification.lowering.calls import Wide, on_processor, widest
from mugraph.verification.lowering.inputs import NotDrawn, Numbers, draw, program_inputs
from mugraph.verification.lowering.judge import KNOWN, Jittered, judge
from mugraph.verification.lowering.sizes import shorter_units, smaller_units
from mugraph.verification.lowering.work import Work, work_of
from mugraph.verification.pieces import Piece, pieces
from mugraph.verification.torch_reference import evaluate, outputs

QUICK_PRODUCTS, QUICK_ELEMENTS = 4e9, 2e7
"""Up to which the calls are run at their own sizes in float64: about a second on two processors, draws and all."""
QUICK_PROGRAM = 4e7
"""Numbers that the program's operators make, windows spread out, up to which all of it is evaluated."""
INSTANT_ELEMENTS, INSTANT_PROGRAM = 4e6, 1e7
"""Of larger tensors smaller sizes are looked for first: where terms cancel, the program is evaluated up to sixteen
times more, which takes a minute where once takes a second."""
MOST_PRODUCTS, MOST_ELEMENTS = 1.5e11, 2.5e8
"""Up to which they are run at their own sizes at all, in float32: some seconds, and a gigabyte."""
PIECE = 1 << 22
"""Elements of the largest value of a piece of a program that is compared in part."""
_PIECES = 3
_SHORTER = 4
"""Ways to make the sizes of ranges shorter that are tried."""
_MANY, _AGAIN, _LITTLE = 2048, 8, 1e6
"""Elements of results that are compared, if it takes no more than so many draws, which read and make so many."""
KINDS: tuple[Numbers, ...] = ("mixed", "normal", "positive", "small")


def beside_calls(unit: SearchUnit, seed: int) -> LoweringResult:
    """At the unit's own sizes in float64 where that is instant; else at smaller ones, if the calls can be made for
    them; else at its own in float64 where that is quick, or, of a range, at the largest that is instant; else at its
    own in float32, of the program a few pieces. In float32 also where PyTorch has a call in nothing wider. Never raises
    for what the calls do."""
    wide = widest(unit.calls)
    try:
        work = work_of(unit)
        if _is_quick(work) and work.elements <= INSTANT_ELEMENTS:
            return _tested_as(unit, wide, seed)
        for small in _smaller(unit):
            try:
                found = _tested_as(small, wide, seed)
            except NotReplayable:  # made for other sizes in the wrong way
                continue
            if found.passed:
                differing = {a: n for a, n in small.program.sizes.items() if n != unit.program.sizes[a]}
                return LoweringResult(True, sizes=differing, wide=wide, share=found.share, error=found.error)
        if _is_quick(work):
            return _tested_as(unit, wide, seed)
        if work.is_within(MOST_PRODUCTS, MOST_ELEMENTS):
            return _tested_as(unit, "float32", seed)
    except (NotDrawn, NotReplayable) as error:
        return LoweringResult(None, str(error))
    return LoweringResult(
        None, f"at its own sizes it takes {work.words}, and its calls cannot be made for smaller ones"
    )


def _smaller(unit: SearchUnit) -> Iterator[SearchUnit]:
    """Those that are quick. Of a range that is too much in float64, all numbers at a smaller size say more than a few
    pieces in float32 do at the largest."""
    yield from (small for small in smaller_units(unit) if _is_quick(work_of(small)))
    if not _is_quick(work_of(unit)):
        yield from islice((small for small in shorter_units(unit) if _is_instant(work_of(small))), _SHORTER)


def _is_instant(work: Work) -> bool:
    return _is_quick(work) and work.elements <= INSTANT_ELEMENTS and work.program <= INSTANT_PROGRAM


def _is_quick(work: Work) -> bool:
    return work.is_within(QUICK_PRODUCTS, QUICK_ELEMENTS) and work.program <= QUICK_PROGRAM


def _tested_as(unit: SearchUnit, wide: Wide, seed: int) -> LoweringResult:
    """On mixed numbers, on others where too few of those can be told; again and again where there are few."""
    said, passed, left = "too few of its numbers can be told", list[LoweringResult](), list[LoweringResult]()
    elements = work_of(unit).elements
    for number, numbers in enumerate((*KINDS, *(KINDS[:2] * _AGAIN))):
        told = len(passed) * sum(prod(unit.values[value].shape) for value in unit.outputs.values())
        if passed and (told >= _MANY or number * elements > _LITTLE):
            break
        generator = torch.Generator().manual_seed(seed + number)
        try:
            found = _tested_on(unit, numbers, wide, generator)
        except _Left as error:
            left.append(error.found)
            continue
        except (NotDrawn, NotReplayable):
            raise
        except Exception as error:  # whatever PyTorch raises: a call that it does not have here, or no memory
            lines = str(error).strip().splitlines()
            said = f"PyTorch does not run them here ({type(error).__name__}: {lines[0][:200] if lines else ''})"
            continue
        if found.passed is False:
            return found
        passed += [found] if found.passed else []
        if not passed and number + 1 == len(KINDS):
            break
    if not passed and left:
        return left[0]
    return max(passed, key=lambda one: one.error, default=LoweringResult(None, said))


class _Left(Exception):
    """The program's value is no number where the calls give one. On smaller numbers it may be one."""

    def __init__(self, found: LoweringResult) -> None:
        super().__init__(found.reason)
        self.found = found


def _tested_on(unit: SearchUnit, numbers: Numbers, wide: Wide, generator: torch.Generator) -> LoweringResult:
    """Where something on the way is no number, other inputs say more, if there are any. Raises _Left."""
    values = draw(unit, numbers, wide, generator)
    with _default_type(wide), torch.no_grad():
        viewed = replay(on_processor(unit.views, unit.viewed, wide), values)
        writes = any(map(is_inplace, unit.calls))
        own = {value: tensor.clone() for value, tensor in values.items()} if writes else values
        called = replay(on_processor(unit.calls, unit.values, wide), own)
    found = _compared(unit, viewed, called, wide, generator)
    if found.passed is False and numbers != KINDS[-1] and any(_is_unclear(one, numbers) for one in called.values()):
        return LoweringResult(None)
    return found


def _is_unclear(tensor: Tensor, numbers: Numbers) -> bool:
    """Zeros may make infinite what other numbers do not; what is infinite of those is meant, as in a mask."""
    return bool(tensor.isnan().any() if numbers != "mixed" else (~torch.isfinite(tensor)).any())


def _compared(
    unit: SearchUnit, viewed: Mapping[int, Tensor], called: Mapping[int, Tensor], wide: Wide, generator: torch.Generator
) -> LoweringResult:
    """Raises _Left."""
    inputs, program = program_inputs(unit, viewed), unit.program
    inputs = {name: one.reshape(program.tensor(name).memory_shape(program.sizes)) for name, one in inputs.items()}
    inputs = gathered(program, inputs)
    least, error = 1.0, 0.0
    shapes = {name: tensor.shape(program.sizes) for name, tensor in ((t.name, t) for t in program.outputs.values())}
    for name, value in unit.outputs.items():
        if tuple(called[value].shape) != unit.values[value].shape:
            raise NotReplayable(f"they give {list(called[value].shape)}, not {list(unit.values[value].shape)}")
        if prod(called[value].shape) != prod(shapes[name]):
            reason = f"it has {list(shapes[name])} elements, of {list(called[value].shape)}"
            return LoweringResult(False, reason, name, value, wide=wide)
    every = list(pieces(program, PIECE if wide == "float32" else 1 << 62))
    chosen, wanted = _some(every, generator), tuple(program.outputs)
    for piece in chosen:
        given = piece.inputs(inputs)

        def jittered(piece: Piece = piece, given: Mapping[str, Tensor] = given) -> dict[str, Tensor]:
            rounding = Jittered(wide, generator)
            return outputs(piece.program, evaluate(piece.program, given, rounding, wanted, shifts=True))

        exact = outputs(piece.program, evaluate(piece.program, given, wanted=wanted, shifts=True))
        for name, ours in exact.items():
            layout, value = program.tensor(name), unit.outputs[name]
            laid = called[value].permute(unit.order_of(value))
            theirs = piece.of(layout, laid.reshape(shapes[name])).to(torch.float64)
            judged = judge(ours, theirs, wide, lambda name=name: jittered()[name])
            if judged.trouble is not None:
                wrong = LoweringResult(False, judged.trouble, name, value, wide=wide)
                if judged.left:
                    raise _Left(wrong)
                return wrong
            least, error = min(least, judged.known), max(error, judged.error)
    if least < KNOWN:
        return LoweringResult(None)
    return LoweringResult(True, wide=wide, share=len(chosen) / len(every), error=error)


def _some(every: list[Piece], generator: torch.Generator) -> list[Piece]:
    """The first, the last, and others by chance."""
    if len(every) <= _PIECES:
        return every
    between = 1 + int(torch.randint(len(every) - 2, (), generator=generator))
    return [every[0], every[between], every[-1]]


class _default_type:
    """Whole numbers that are divided have the wide type, as those that are converted by name."""

    def __init__(self, wide: Wide) -> None:
        self._wide = getattr(torch, wide)

    def __enter__(self) -> None:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(self._wide)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)
