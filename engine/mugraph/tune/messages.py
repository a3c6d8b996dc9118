"""What the measuring process is asked, and what it answers: frozen values, in the frames of mugraph.pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mugraph.ir.calls import Triangle
from mugraph.ir.ops import Tf32
from mugraph.trace.picture import Picture

Compiler = Literal["none", "default", "max-autotune-no-cudagraphs", "reduce-overhead"]
REPLAYS: Compiler = "reduce-overhead"
"""It captures CUDA graphs of its own and replays them at each call: only its calls can be timed."""


REFUSED = "refuses the call that it was made for"
DIFFERS = "differs from the original"
"""Said where a region's test says no of what the user's code passes: its kernels would never run."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One tensor argument. strides in elements; scale: standard deviation of its normally distributed values; high: of
    integers, which are drawn from 0 up to below it; triangle: what it holds instead; positive: none of its numbers has
    a sign; skew: elements from a multiple of 16 bytes to its first one."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    scale: float = 1.0
    high: int = 2
    triangle: Triangle | None = None
    positive: bool = False
    skew: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to run: a complete Python module and the function in it that takes the inputs in order.

    name:     unique in a comparison ("eager", "torch.compile", "ours")
    compiler: "none", or torch.compile's mode
    beside:   files that the module reads: name, text
    tf32:     PyTorch's settings of TF32 that are on while it runs; others are off
    jumps:    it rounds to whole numbers, or to eight bits: what a value in the middle between two of these becomes is
              decided by its own error
    writes:   positions of the inputs that it writes to: what they hold afterwards are results as well
    """

    name: str
    source: str
    function: str
    compiler: Compiler = "none"
    beside: tuple[tuple[str, str], ...] = ()
    tf32: tuple[Tf32, ...] = ()
    jumps: bool = False
    writes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """The user's file with one region replaced, to call there what the program calls.

    path:        of the user's file, where its imports start from
    text:        the edited file
    module, module_text: name of the kernel module that it imports, and its text
    function:    in which the region is
    fits, name:  the test and the replacement in the kernel module
    beside:      files that the kernel module reads: name -> text
    recorded, pictures: shapes and calls that `mugraph record` has seen, as tracing takes them
    sizes:       of the ranges that comments say, where it is not called with the largest
    """

    path: str
    text: str
    module: str
    module_text: str
    function: str
    fits: str
    name: str
    beside: Mapping[str, str]
    recorded: Mapping[str, Mapping[str, str]] | None = None
    pictures: Mapping[str, Picture] | None = None
    sizes: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Hello:
    """First answer of a new process. l2: bytes of second-level cache."""

    device: str
    versions: Mapping[str, str]
    l2: int


@dataclass(frozen=True, slots=True)
class Warm:
    """Compile the subject's kernels into the shared cache without running them."""

    subject: Subject
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True)
class Agree:
    """Compare two subjects on the same inputs in the program's own precision."""

    subject: Subject
    reference: Subject
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True)
class Digits:
    """Run the subject with its settings of TF32 and with none: does it keep float32's digits all the same?"""

    subject: Subject
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Compile, run and capture the subject; it stays ready under its name.

    limit_us: what takes longer is not captured, and its time is the answer (Slow)
    """

    subject: Subject
    inputs: tuple[InputSpec, ...]
    limit_us: float | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Time prepared subjects, one replay of each in turn, `rounds` times."""

    names: tuple[str, ...]
    rounds: int


@dataclass(frozen=True, slots=True)
class Enter:
    """Build what the program calls, with the user's own objects; it can be called under this name from then on, in
    place of what was prepared under it. reference: the region's code, which it is compared with on the tensors that
    the program has there; None where that is not needed"""

    name: str
    applied: Applied
    reference: Subject | None = None


@dataclass(frozen=True, slots=True)
class CallEach:
    """Time calls of prepared subjects as a program makes them: from the host, one call after the other."""

    names: tuple[str, ...]
    rounds: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget prepared subjects and free their memory."""

    names: tuple[str, ...]


Request = Warm | Agree | Digits | Prepare | Replay | Enter | CallEach | Drop


@dataclass(frozen=True, slots=True)
class Ok:
    """Done. seconds: that Warm or Prepare took."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Agreed:
    """error: largest difference to the exact result over its largest value; limit: what was allowed."""

    passed: bool
    error: float
    limit: float


@dataclass(frozen=True, slots=True)
class Kept:
    """digits: all of them are"""

    digits: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """Microseconds of one launch or one call, one sample per round."""

    samples: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Failure:
    """reason: one sentence. fatal: the process cannot be used again (a CUDA context once broken stays so).
    memory: there was too little of it beside what is ready."""

    reason: str
    fatal: bool = False
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Slow:
    """A launch takes longer than was asked for. us: one launch, microseconds"""

    us: float


Reply = Hello | Ok | Slow | Agreed | Kept | Timed | Failure
