"""Is a search unit's tensor program what its recorded calls compute?

Every other check compares a kernel with the program. This one compares the program with PyTorch: the calls are run on
random numbers, in the process that runs kernels (run.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.calls import operands, renumbered
from mugraph.ir.content import digest
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.renaming import canonical
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verdict import Lowering


def check_lowering(unit: SearchUnit, smaller: Sequence[SearchUnit], tester: FloatTester) -> Lowering:
    """smaller: of a size in a range, the unit at others than the largest"""
    own = tester.test_lowering(unit)
    if own.passed is False:
        return Lowering(False, _fault(unit, own))
    instead = None
    for at in smaller:  # all of them: along an axis of one element much is equal that differs along others
        found = tester.test_lowering(at)
        if found.passed is False:
            return Lowering(False, f"{_fault(at, found)} ({_sizes(at.program.sizes)})")
        if found.passed:
            instead = f"{_how(found)}, at {_sizes(at.program.sizes)}"
    if own.passed is None and instead is not None:
        return Lowering(True, f"{instead}; not at the largest: {own.reason}")
    return Lowering(own.passed, _how(own) if own.passed else own.reason)


def mark_of(unit: SearchUnit, smaller: Sequence[SearchUnit] = ()) -> str:
    """Equal for units that differ in names, numbers of values, and places in the source alone: what is found of one is
    true of the other."""
    return digest("lowering", *(_described(one) for one in (unit, *smaller)))


def _described(unit: SearchUnit) -> object:
    program, names = canonical(unit.program)
    numbers: dict[int, int] = {}
    calls = (*unit.views, *unit.calls)
    for call in calls:
        for value in (*operands(call), *call.outputs):
            numbers.setdefault(value, len(numbers))
    for value in (*unit.inputs.values(), *unit.outputs.values()):
        numbers.setdefault(value, len(numbers))
    known = {**unit.viewed, **unit.values}
    return (
        program,
        [
            (
                call.target,
                repr([renumbered(argument, numbers) for argument in call.args]),
                {name: repr(renumbered(argument, numbers)) for name, argument in call.kwargs.items()},
                [numbers[value] for value in call.outputs],
            )
            for call in calls
        ],
        {str(number): known.get(value) for value, number in numbers.items()},
        {names.tensors[name]: numbers[value] for name, value in (*unit.inputs.items(), *unit.outputs.items())},
    )


def _fault(unit: SearchUnit, found: LoweringResult) -> str:
    line = next((call.range.start.line + 1 for call in unit.calls if found.value in call.outputs), None)
    where = f" (line {line})" if line is not None else ""
    return f"of {found.output}{where} {found.reason}"


def _how(found: LoweringResult) -> str:
    at = f"with {_sizes(found.sizes)}" if found.sizes else "at its own sizes"
    part = "" if found.share == 1.0 else f", of {found.share:.0%} of the results"
    return f"{found.wide}, {at}{part}, largest difference {found.error:.1e}"


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in sizes.items())
