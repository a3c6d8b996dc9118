"""What verification found, with its evidence (stored with the result and shown to the user)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Proof:
    """Whether the graph is proved to be the program (proof.py); tests alone prove nothing.

    proved: every element of every output is shown to be the same expression of the inputs
    sizes:  of each axis, at which that was tried
    note:   how it is proved; or why it is not, in a clause
    """

    proved: bool
    sizes: Mapping[str, int]
    note: str

    @property
    def words(self) -> str:
        if not self.proved:
            return f"not proved, only tested: {self.note}"
        sizes = ", ".join(f"{axis}={size}" for axis, size in self.sizes.items())
        return (
            f"proved equal for all real inputs at which both are defined, at {sizes} ({self.note}); neither other "
            "sizes nor rounding are part of the proof"
        )


@dataclass(frozen=True)
class SameBits:
    """Whether the results are, bit for bit, PyTorch's (solve/same_bits.py).

    why:   not, in a clause
    apart: what is left out of it; "" for nothing
    """

    holds: bool
    why: str = ""
    apart: str = ""

    @property
    def words(self) -> str:
        if not self.holds:
            return f"not known to have the same bits as PyTorch: {self.why}"
        return f"the same bits as PyTorch{f', apart from {self.apart}' if self.apart else ''}"


@dataclass(frozen=True)
class Lowering:
    """Whether the tensor program, which all other checks compare a kernel with, is what PyTorch's calls compute
    (lowering.py).

    passed: None where that was not checked
    note:   how it was checked; why it is not, or was not: a clause
    """

    passed: bool | None
    note: str

    @property
    def words(self) -> str:
        if self.passed is None:
            return f"NOT CHECKED that the program is what PyTorch's own calls compute: {self.note}"
        if not self.passed:
            return f"the program is not what PyTorch's own calls compute: {self.note}"
        return f"the program is what PyTorch's own calls compute on random numbers: {self.note}"


@dataclass(frozen=True)
class Verdict:
    """
    passed:        every step that was run agreed
    reason:        why not, in one sentence; None when passed
    lax:           both graphs are in the Lax fragment (else no bound is claimed)
    repetitions:   independent random seeds tested over the finite fields
    sizes:         axis sizes of the field tests
    bound:         probability of accepting a wrong graph (Mirage Theorem 2), None where it was not earned. Of the
                   algebra of the topology at the first of `sizes`, not of other sizes and not of a schedule
    bound_note:    what it was earned with; why there is none ("sqrt is outside the theorem")
    indexing:      how the schedule's own tiles, loops and masks were tested at full size; None until they were
    text:          what of the emitted kernels' text was run over the fields at full size; None until it was
    max_rel_error: largest error of the compiled or interpreted kernel against float64; None until the float test ran
    eager_rel_error: the same error of the eager program in its own precision
    ulps:          by the kind of inputs: the largest difference of an element from what eager PyTorch rounds it to, in
                   units in the last place; empty until the float test ran
    float_from_store: that test is one of an earlier run, kept in the store; all else was run again
    float_device:  where the float test ran: "interpreter" or the GPU's name
    dynamic_sizes: axis whose size is known at run time only -> the sizes of the float tests
    proved_sizes:  such an axis -> the least and the largest size, for all of which the use of memory was proved
    proved_claims: how many claims that took
    versions:      torch, triton, mugraph
    proof:         of the algebra, at small sizes; None where none was tried
    same_bits:     whether its results are PyTorch's bit for bit; None where that was not looked at
    lowering:      whether the program is what the recorded calls compute; None until that was looked at
    below:         of the kernels that are launched up to a size in place of these, in the order of their sizes
    seed:          of the random inputs of the first test over the fields; it repeats them. None where none was run
    """

    passed: bool
    reason: str | None = None
    lax: bool = False
    repetitions: int = 0
    sizes: tuple[Mapping[str, int], ...] = ()
    bound: float | None = None
    bound_note: str | None = None
    indexing: str | None = None
    text: str | None = None
    max_rel_error: float | None = None
    eager_rel_error: float | None = None
    ulps: Mapping[str, float] = field(default_factory=dict[str, float])
    float_sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    float_device: str | None = None
    float_from_store: bool = False
    dynamic_sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    proved_sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    proved_claims: int = 0
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    proof: Proof | None = None
    seed: int | None = None
    same_bits: SameBits | None = None
    lowering: Lowering | None = None
    below: tuple[Verdict, ...] = ()

    def of_sizes(self, called: Mapping[str, str]) -> Verdict:
        """With axes that vary as what they are of the sizes that the user has named. called: axis -> `s + t`"""
        return replace(
            self,
            dynamic_sizes={called.get(axis, axis): sizes for axis, sizes in self.dynamic_sizes.items()},
            proved_sizes={called.get(axis, axis): ends for axis, ends in self.proved_sizes.items()},
            below=tuple(one.of_sizes(called) for one in self.below),
        )

    @property
    def bound_words(self) -> str:
        """What the bound covers, or why there is none."""
        if self.bound is None:
            return f"no bound on accepting a wrong graph ({self.bound_note or 'none was earned'})"
        note = f" ({self.bound_note})" if self.bound_note else ""
        return (
            f"a wrong graph passes with probability at most {self.bound:.1e}{note}: a bound on the algebra of the "
            "topology at the first of these sizes, neither on other sizes nor on the schedule"
        )

    @property
    def ulps_words(self) -> str | None:
        """How far single elements are from PyTorch's; None where that was not looked at."""
        if not self.ulps:
            return None
        usual, most = self.ulps.get("normal"), max(self.ulps.values())
        said = "largest difference of an element from PyTorch's rounding, in units in the last place: "
        ordinary = "" if usual is None else f"{usual:.3g} on normal inputs, "
        return f"{said}{ordinary}{most:.3g} on all inputs tried"

    @property
    def schedule_words(self) -> str:
        """What was done for the schedule, which no bound covers."""
        return f"{self.indexing}; no bound" if self.indexing else "its own tiles, loops and masks were not run"

    @property
    def ranges_words(self) -> str | None:
        """Which of the two covers what where a size varies: the proof, for all sizes, or the tests, at some."""
        if not self.proved_sizes:
            return None
        sizes = ", ".join(f"{axis} = {least}..{largest}" for axis, (least, largest) in self.proved_sizes.items())
        tested = ", ".join(f"{axis} = {', '.join(map(str, at))}" for axis, at in self.dynamic_sizes.items())
        said = (
            f"for all of {sizes} it is proved of the text (z3, {self.proved_claims} claims) that no access is outside "
            "of its tensor, that every output element is written exactly once, and that sums along these axes read "
            "every element that no mask leaves out exactly once"
        )
        return f"{said}; what is computed from the elements was tested at {tested}" if tested else said
