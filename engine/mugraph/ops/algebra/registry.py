"""Which PyTorch calls have a meaning here: every family file registers its rules by target when it is imported.

A rule answers one question: *what is this call's result at these axes?* It asks the builder for its operands at the
axes it needs them (`Builder.at`) and combines them with the builder's primitives. Views, transposes and broadcasts are
rules that only pass the question on. A new call is a rule in a file of `ops.families`, or a new file there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from mugraph.ir.calls import Call, operands
from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.builder import Entry, Rule
from mugraph.ops.algebra.spellings import canonical

__all__ = ["canonical", "entries", "entry_for", "known_targets", "looks_up", "lowers"]

_ENTRIES: dict[str, Entry] = {}
_FAMILIES = "mugraph.ops.families"


def lowers(
    *targets: str,
    parameters: str = "input",
    shape_only: bool = False,
    first_only: bool = False,
    several: bool = False,
    truth: bool = False,
    joins: bool = False,
    tf32: Tf32 = "",
    in_part: bool = False,
    in_float32: bool = False,
    in_float8: bool = False,
    numbers: str = "",
) -> Callable[[Rule], Rule]:
    """Register the decorated rule for `targets`.

    parameters: names of the call's parameters, separated by blanks; `other|mat2` is one with two names
    numbers: some of them
    """

    def register(rule: Rule) -> Rule:
        for target in targets:
            if target in _ENTRIES:
                raise ValueError(f"two rules for {target}")
            names = tuple(parameters.split())
            _ENTRIES[target] = Entry(
                rule, names, shape_only, first_only, several, truth, joins, tf32, in_part, in_float32, in_float8,
                tuple(numbers.split()),
            )  # fmt: skip
        return rule

    return register


@cache
def entries() -> dict[str, Entry]:
    """Every rule, by canonical target."""
    package = import_module(_FAMILIES)
    for module in iter_modules(package.__path__):
        import_module(f"{_FAMILIES}.{module.name}")
    return _ENTRIES


def entry_for(target: str) -> Entry | None:
    return entries().get(canonical(target))


def looks_up(call: Call) -> bool:
    """Is it an index that holds tensors of places? Its entry is that of a view, which it is not."""
    return canonical(call.target) == "Tensor.__getitem__" and len(operands(call)) > 1


def known_targets() -> tuple[str, ...]:
    """All calls that can be lowered, sorted."""
    return tuple(sorted(entries()))
