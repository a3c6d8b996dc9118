"""What messages are made of: documents, regions, edits. Positions are the editor's: 0-based, in UTF-16 code units."""

from __future__ import annotations

from typing import Literal

import msgspec

from mugraph.protocol.settings import CompareWith


class Position(msgspec.Struct, frozen=True, order=True):
    line: int
    character: int


class Range(msgspec.Struct, frozen=True, order=True):
    """end is exclusive."""

    start: Position
    end: Position


class Document(msgspec.Struct, frozen=True):
    """A text the editor has open, at one version.

    uri:     names the document in every message about it; the engine only compares it
    path:    where the file is on the engine's machine; for a notebook's cells or an untitled file where it would be
             (imports start from its folder), and then it need not exist
    version: the editor's; the engine hands it back with all it finds
    text:    None: what the disk holds; else what the buffer holds now
    """

    uri: str
    path: str
    version: int
    text: str | None = None


Priority = Literal["background", "visible", "saved"]
"""Of a job, the least urgent first. Among equals the one asked for first comes first."""

RegionStatus = Literal[
    "needs-shapes", "queued", "searching", "improved", "no-gain", "unsupported", "failed", "applied", "stale"
]
"""needs-shapes: its arguments' shapes are not known        unsupported: nothing in it can be searched; message says why
queued, searching: it will be, is being searched            failed: its code raised, or the engine did; message says how
improved: a verified kernel is expected or measured to win   applied: it stands in code that a kernel replaces already
no-gain: searched, and PyTorch's own is as good             stale: never said by the engine; the server's word for a
                                                            result of code that has been edited since
"""


class Input(msgspec.Struct, frozen=True):
    """A tensor that the region reads, called what the source calls it. dtype: "f16", "bf16", "f32", ..."""

    name: str
    shape: list[int]
    dtype: str


class Called(msgspec.Struct, frozen=True):
    """Timing's figures as a program calls it: wall time of a call in eager mode, with guards and launch. method: how
    they were taken."""

    baseline_us: float | None = None
    optimized_us: float | None = None
    speedup: float | None = None
    peers_us: dict[str, float] = {}
    best_peer: str | None = None
    best_speedup: float | None = None
    method: str = ""


class SizeTiming(msgspec.Struct, frozen=True):
    """At one size of a range; what the figures are, Timing says. gains: the kernel would run there."""

    size: int
    baseline_us: float | None = None
    optimized_us: float | None = None
    speedup: float | None = None
    peers_us: dict[str, float] = {}
    best_peer: str | None = None
    best_speedup: float | None = None
    as_called: Called | None = None
    gains: bool | None = None

    @property
    def runs(self) -> bool:
        """Whether the kernel would run at this size."""
        return self.gains if self.gains is not None else (self.speedup or 0) > 1


class Timing(msgspec.Struct, frozen=True):
    """Microseconds. source: where they come from; "measured" is on `device`, "estimated" is by a cost model for it.

    baseline_us, speedup: of the code as it runs, and over it; on the device
    peers_us:   what PyTorch offers for the code ("eager", which is the code as it runs, "torch.compile", ...): times or
                estimates, as `source` says
    best_peer, best_speedup: the fastest of them, and over that one
    as_called:  the same on the clock of the program; None where nothing was measured
    compare_with: the setting by which it was judged
    at:         of a size in a range: the one that the figures are of, "b = 16"
    faster_for: then: for which sizes the kernel is faster and would run, "b up to 16"; "" for none
    sizes:      then: the figures at each size that was timed, the smallest first
    """

    source: Literal["measured", "estimated"]
    device: str
    method: str
    baseline_us: float | None = None
    optimized_us: float | None = None
    speedup: float | None = None
    peers_us: dict[str, float] = {}
    at: str = ""
    faster_for: str = ""
    sizes: list[SizeTiming] = []
    best_peer: str | None = None
    best_speedup: float | None = None
    as_called: Called | None = None
    compare_with: CompareWith = "both"


class SearchSummary(msgspec.Struct, frozen=True):
    """ended_by: "space" (all of it was searched), "size", "topologies", "values", "time", "traffic", "fit" or
    "cancelled"."""

    topologies: int
    candidates: int
    complete: bool
    ended_by: str
    total_s: float
    first_verified_s: float | None
    from_store: bool


class Candidate(msgspec.Struct, frozen=True):
    """A verified candidate that a search has met.

    kernel:      name of the kernel it would be, one for each search unit of the region
    number:      of the candidate in its unit, in the order of discovery; the same number again is the same
                 candidate, with more known of it
    seconds:     since the search of its unit began
    words:       its grid, loops and launch, for people
    block_ops:   operators of its block graphs
    estimate_us: microseconds by the cost model: an estimate, always
    measured_us: on the device; None where it was not timed
    chosen:      the unit's kernel is made of it
    """

    kernel: str
    number: int
    seconds: float
    words: str
    block_ops: int
    estimate_us: float
    measured_us: float | None = None
    chosen: bool = False


class Share(msgspec.Struct, frozen=True):
    """Of a recorded run, that a function took: with what it calls, on a GPU by the device's time; own: without what it
    calls of the user's functions. whole: the region is all of the function. overall: how much faster the run is by the
    region's gain, at most where it is not; None for no gain. fitting: where its kernel would take only some of the
    recorded calls, how many, and why not the others: "made for 12 of 36 recorded calls; in others ..."."""

    part: float
    own: float
    calls: int
    whole: bool = False
    overall: float | None = None
    fitting: str = ""


class Region(msgspec.Struct, frozen=True):
    """A part of a document that can be replaced, and what is known of it.

    key:        names the region by its content (function, text, and its number among equals): the same in every version
                that still has this code, wherever it has moved to
    function:   qualified name ("RMSNormLinear.forward")
    range:      what would be replaced; with "needs-shapes" and code that raised, the function's head
    name_range: the function's head ("def forward"), where a lens goes
    statements: ranges of the traced calls, in order, for related information
    message:    one sentence for the user, always there
    evidence:   how it was verified, one sentence each; empty where nothing was
    verified:   every kernel of it passed verification
    applicable: `PrepareEdit` can write it now
    kernels:    names of its generated kernels
    id:         ten digits that name code, guards and μGraph together; "" without a μGraph
    candidates: that its search has met, unit by unit: each that was expected to be the fastest so far, the best of each
                further topology, and all that were timed
    sizes:      a size that its kernels take anywhere in a range ("b = 1..64"); "" for none. Shapes and candidates
                are at the largest
    share:      of a recorded run, that its function took
    """

    key: str
    function: str
    range: Range
    name_range: Range
    status: RegionStatus
    message: str
    statements: list[Range] = []
    inputs: list[Input] = []
    verified: bool = False
    lax: bool = False
    applicable: bool = False
    evidence: list[str] = []
    timing: Timing | None = None
    search: SearchSummary | None = None
    kernels: list[str] = []
    block_ops: int = 0
    id: str = ""
    candidates: list[Candidate] = []
    sizes: str = ""
    share: Share | None = None


class TextEdit(msgspec.Struct, frozen=True):
    range: Range
    new_text: str


class Recording(msgspec.Struct, frozen=True):
    """Arguments a function was called with, as a `# mugraph:` comment writes them: {"x": "f16[16, 4096]"}.

    calls: how many of the calls looked at were like this
    init:  of the module's constructor, where the function is a module's and they are known
    """

    function: str
    arguments: dict[str, str]
    devices: list[str]
    calls: int
    init: dict[str, str] | None = None


class KernelCheck(msgspec.Struct, frozen=True):
    """Of one replaced part of a document and its generated kernel.

    state:  "fits"     the code is as the kernel was made for
            "stale"    the replaced code was edited: the kernel may compute something else
            "missing"  the document imports a kernel module that is not there
            "unused"   the kernel module is there, and the document does not call it
    range:  of the replaced part, or of the import; None for "unused"
    module: path of the kernel module
    runs:   "taken 56 of 63 calls in the last check; first refused: ..."; "" where no run was checked
    """

    state: Literal["fits", "stale", "missing", "unused"]
    module: str
    message: str
    function: str = ""
    range: Range | None = None
    id: str = ""
    runs: str = ""


class Finding(msgspec.Struct, frozen=True):
    """As `mugraph doctor` prints it. advice: what to do about it."""

    what: str
    found: str
    state: Literal["ok", "note", "problem"]
    advice: str | None = None


class Device(msgspec.Struct, frozen=True):
    """kind "none": times are estimates. note: why a GPU that seems to be there cannot be used."""

    name: str
    kind: Literal["gpu", "none"]
    target: str
    driver: str | None = None
    note: str | None = None
