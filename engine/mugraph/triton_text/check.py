"""Is the text of a launcher and its kernels the same function as a program?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from mugraph.ir.dtypes import DType
from mugraph.ir.program import TensorProgram
from mugraph.triton_text.bits import BitField, Bits, NotSame
from mugraph.triton_text.earning import Earned, earned
from mugraph.triton_text.refusals import Refused, TooMuch, Unreadable, Wrong
from mugraph.triton_text.surveyed import Layout, Surveyed
from mugraph.triton_text.verdict import TextVerdict
from mugraph.verification.evaluate import Malformed
from mugraph.verification.index_numbers import Numbers, draws_of, numbers_of

TOO_MUCH = "too much"
"""The check of a text whose memory is in order, and whose numbers would take too long to look at."""
MOST_READ = 1 << 28
"""Elements that the blocks which are run may read, where they need not be run: about ten seconds."""


def check_text(
    program: TensorProgram,
    text: str,
    launcher: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    seed: int | None = None,
    configuration: int = 0,
    given: Mapping[str, object] | None = None,
    memory_alone: bool = False,
    left: str = "",
    shapes: Mapping[str, Layout] | None = None,
    target: float | None = None,
    most: float = inf,
    within: bool = False,
) -> TextVerdict:
    """inputs: the program's tensors in the order of the launcher's parameters; outputs: in the order of its results
    configuration: of kernels that have several (@triton.autotune). given: other arguments of the launcher, by name
    memory_alone: pass a text whose numbers the fields have no meaning for, with its memory in order; else it is unread
    left: why no number is to be looked at, if so
    shapes: tensor -> shape and strides, where the launcher gets and returns others than the program's
    target: run it with as many seeds as show, by Theorem 2, that a wrong text passes with this chance at most; where
        the theorem does not cover it, or not all blocks are run, the verdict says so. None asks for no bound
    most: elements read by the blocks that are run, above which no number is looked at: the check is then TOO_MUCH
    within: indices hold numbers of rows alone, as PyTorch asks; else others as well, for which the nearest row is read
    """
    *others, last = draws_of(program, np.random.default_rng(np.random.SeedSequence(seed)), beyond=not within)
    for indices in others:
        verdict = _checked(program, text, launcher, inputs, outputs, seed, configuration, given, memory_alone, left,
                           shapes, None, most, indices)  # fmt: skip
        if not verdict.passed:
            return verdict
    return _checked(program, text, launcher, inputs, outputs, seed, configuration, given, memory_alone, left, shapes,
                    target, most, last)  # fmt: skip


def _checked(
    program: TensorProgram,
    text: str,
    launcher: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    seed: int | None,
    configuration: int,
    given: Mapping[str, object] | None,
    memory_alone: bool,
    left: str,
    shapes: Mapping[str, Layout] | None,
    target: float | None,
    most: float,
    indices: Mapping[str, Numbers],
) -> TextVerdict:
    """With one draw of the indices. The other parameters are those of `check_text`."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    try:
        checked = Surveyed(program, text, launcher, inputs, outputs, rng, configuration, given or {}, shapes or {},
                           most, indices)  # fmt: skip
        left = left or _why_no_numbers(program)
        if left and not memory_alone:
            raise Unreadable(left)
        way, much = None, False
        if not left:
            try:
                way = checked.compare()
            except TooMuch as error:
                left, much = str(error), True
        bound = Earned() if way is None or target is None else earned(checked, way, target)
    except Unreadable as error:
        return TextVerdict(False, f"the text cannot be read: {error}", "unread", error.line)
    except TooMuch as error:
        return TextVerdict(False, f"the text cannot be checked: {error}", "unread", error.line)
    except Wrong as error:
        return TextVerdict(False, str(error), error.check, error.line, where=error.where)
    except Malformed as error:
        return TextVerdict(False, str(error), "unread")
    run = 0 if much else checked.count_run()
    return TextVerdict(
        True, check=TOO_MUCH if much else "",
        run=run, blocks=checked.blocks, configurations=checked.configurations, left=left, without=checked.without,
        seeds=bound.seeds, bound=bound.bound, bound_note=bound.note,
    )  # fmt: skip


def check_bits(
    program: TensorProgram, text: str, launcher: str, inputs: Sequence[str], outputs: Sequence[str], dtype: DType
) -> tuple[str | None, str]:
    """Does each operation of the text round where PyTorch does, which computes the program operator by operator in one
    type? Why that is not known, in a clause; or None, and what the same bits are apart from.

    text: one that check_text has passed. dtype: of all tensors and values of the program
    """
    rng = np.random.default_rng()
    field = BitField(rng, dtype)
    try:
        numbers = numbers_of(program)
        checked = Surveyed(program, text, launcher, inputs, outputs, rng, 0, {}, {}, MOST_READ, numbers)
        checked.compare_bits(Bits(field))
    except (Refused, Malformed) as error:
        return (str(error) if isinstance(error, NotSame | Malformed) else f"by its text, {error}"), ""
    apart = ["where an input is NaN"] if field.drops_nan else []
    return None, " or ".join([*apart, "the sign of a zero"] if field.chooses else apart)


def _why_no_numbers(program: TensorProgram) -> str:
    """A sum that is relative to its row's maximum has another logarithm. Over the reals the maximum is added to it;
    over the fields a logarithm is a random function, of which no such thing is known."""
    past: set[str] = set()
    for op in program.ops:
        if op.kind.is_exponential or past.intersection(op.inputs):
            if op.kind.opaque is not None and op.kind.opaque.undoes_exp:
                return f"{op.name} is a logarithm of exponentials, which a kernel takes relative to their maximum"
            past.add(op.name)
    return ""
