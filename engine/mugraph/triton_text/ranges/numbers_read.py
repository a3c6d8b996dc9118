"""Numbers that a kernel reads, which say the rows of another tensor that it reads: what may depend on them."""

from __future__ import annotations

from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.formulas import every
from mugraph.triton_text.ranges.placed import Placed
from mugraph.triton_text.ranges.poly import atom
from mugraph.triton_text.refusals import Wrong


def check_numbers(one: Placed, atoms: Atoms, kernel: str) -> None:
    """What is made of such a number says which row is read, and nothing else; and it is made of numbers alone. So it is
    the same at all sizes, and the fields show at some that it is right. Raises Wrong."""

    def numbers(name: str) -> frozenset[str]:
        return frozenset(base for base in atoms.depends(name) if atoms.known[base].sort == "read")

    ends = {name for loop in one.loops for fact in atoms.known[loop].facts for name in fact.atoms}
    elsewhere = every(one.holds).atoms | ends
    made = {name for name in elsewhere.union(one.atoms) if numbers(name)}
    if not made:
        return
    whole = all(index == atom(name) for index in one.index.values() for name in index.atoms & made)
    alone = all(numbers(name) == atoms.depends(name) for name in made)
    if one.access.what == "writes" or made & elsewhere or not whole or not alone:
        reason = f"{kernel} makes more of numbers that it reads than which row of a tensor it reads"
        raise Wrong("values", reason, one.access.place.line)
