"""The messages, and the exchanges they make.

Requests have an `id` that the server chooses, unique while it is open. Each gets exactly one answer with that id: the
type its docstring names, or `Failed`. `Search` gets events before its answer. Any number of requests may be open; only
`Find` and `Search` wait for each other (in the queue), everything else is answered at once, also during a search.

    server                                engine
    Hello ------------------------------> Ready                                    first, once
    Configure --------------------------> Configured                               any time
    Find -------------------------------> Found                                    in its turn
    Search -----------------------------> Found?, then per region (RegionChanged | Progress | FirstHit | BetterHit
                                          | AnotherHit)*, then Finished            in its turn
    Cancel, CancelDocument, Close                                                  no answer; see each
    PrepareEdit, PrepareRevert,
      InsertShapes ---------------------> Edit
    Draw -------------------------------> Drawing
    Preview ----------------------------> KernelPreview
    CheckKernels -----------------------> KernelChecks
    AskRecordings ----------------------> Recordings
    AskReport --------------------------> Report
    Ping -------------------------------> Pong
    Exit                                  the process ends with 0; so it does when its standard input ends
                                          Log, Notice                              any time

Versions. Whatever is about a document carries its uri and version. A request for a newer version of a document ends the
older jobs of the same document with outcome "superseded"; messages about an older version than the latest asked for are
not sent. The server still has to compare: a message may be under way while the user types.

Errors. Nothing but messages is ever written to standard output. What goes wrong is one sentence in `Failed.message` or
`Finished.message`; details are in the log file that `Report.log_path` names. A line that is no message is answered with
`Failed` (id null where the line shows none), and the engine goes on.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from mugraph.protocol.values import (
    Candidate,
    Device,
    Document,
    Finding,
    KernelCheck,
    Priority,
    Recording,
    Region,
    Settings,
    TextEdit,
)

PROTOCOL = 2
"""Raised with every change that the other side would not understand."""


# --- from the server -------------------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, tag="hello", tag_field="type"):
    """The first message. Answer: Ready; or Failed, and the engine ends, when it speaks another protocol.

    root: folder of the workspace on the engine's machine; the engine works from it. None: from where it was started
    """

    id: int
    protocol: int = PROTOCOL
    client: str = ""
    root: str | None = None
    settings: Settings = Settings()


class Configure(msgspec.Struct, frozen=True, tag="configure", tag_field="type"):
    """Answer: Configured, or Failed with a sentence about the wrong value (all stay as they were). Jobs that run keep
    what they began with."""

    id: int
    settings: Settings


class Find(msgspec.Struct, frozen=True, tag="find", tag_field="type"):
    """Trace the document, search nothing. Answer: Found; Failed with "cancelled" or "superseded" when it was."""

    id: int
    document: Document
    priority: Priority = "visible"


class Search(msgspec.Struct, frozen=True, tag="search", tag_field="type"):
    """Find the document's regions and search for kernels. Answer: Finished.

    In order: `Found` with this request's id when the document is traced (regions answered from earlier results have
    their result already, the others are "queued"); for each region searched `RegionChanged` ("searching"), `Progress`
    about ten times a second, `FirstHit` when its first topology is verified, `BetterHit` when a better one is,
    `AnotherHit` for candidates that are no better and for times, `RegionChanged` with its result; at last `Finished`.

    Code that was searched before, in this document or wherever it stood, under the same shapes, settings and versions
    is answered without work. again: search it all the same. keys: only these regions are searched; None means all.
    """

    id: int
    document: Document
    priority: Priority = "visible"
    keys: list[str] | None = None
    again: bool = False


class Prioritise(msgspec.Struct, frozen=True, tag="prioritise", tag_field="type"):
    """The document's waiting jobs change their place: it became visible, or was left. No answer."""

    uri: str
    priority: Priority


class Cancel(msgspec.Struct, frozen=True, tag="cancel", tag_field="type"):
    """Of the request with this id, whether it waits or runs. It gets its answer within 200 ms: Finished with outcome
    "cancelled", or Failed with "cancelled". Nothing happens when it has been answered already. No answer of its own."""

    id: int


class CancelDocument(msgspec.Struct, frozen=True, tag="cancel-document", tag_field="type"):
    """As Cancel, of every open Find and Search of the document."""

    uri: str


class Close(msgspec.Struct, frozen=True, tag="close", tag_field="type"):
    """The document was closed: as CancelDocument, and its results are forgotten here (the store keeps them). The next
    version may start again from any number. No answer."""

    uri: str


class PrepareEdit(msgspec.Struct, frozen=True, tag="prepare-edit", tag_field="type"):
    """What replaces these regions by their kernels. Writes nothing. Answer: Edit for exactly this version of the
    document; Failed when a region's code has changed since it was searched.

    keys: of regions that are `applicable`; None: all of them that are
    """

    id: int
    document: Document
    keys: list[str] | None = None


class PrepareRevert(msgspec.Struct, frozen=True, tag="prepare-revert", tag_field="type"):
    """What gives the document its own code back, everywhere. Writes nothing. Answer: Edit."""

    id: int
    document: Document


class InsertShapes(msgspec.Struct, frozen=True, tag="insert-shapes", tag_field="type"):
    """A `# mugraph:` comment above the function. Answer: Edit.

    arguments: as Recording has them; None: a comment to be filled in, with the parameters' names
    init:      as Recording has them; None: those that were recorded with these arguments
    """

    id: int
    document: Document
    function: str
    arguments: dict[str, str] | None = None
    init: dict[str, str] | None = None


class Draw(msgspec.Struct, frozen=True, tag="draw", tag_field="type"):
    """The μGraph of a region. Answer: Drawing.

    form:  "text" a tree, `width` characters wide; "svg" the whole graph; "overview" an SVG small enough for a hover
           (680 by 270, kernels and loops only where the whole graph would not be readable)
    theme: of the SVGs
    """

    id: int
    uri: str
    key: str
    form: Literal["text", "svg", "overview"] = "text"
    theme: Literal["light", "dark"] = "light"
    width: int = 100


class Preview(msgspec.Struct, frozen=True, tag="preview", tag_field="type"):
    """What PrepareEdit would write, as whole texts, for virtual documents and a difference. Answer: KernelPreview."""

    id: int
    document: Document
    keys: list[str] | None = None


class CheckKernels(msgspec.Struct, frozen=True, tag="check-kernels", tag_field="type"):
    """Whether the kernels that replace parts of the document still fit it. Runs nothing. Answer: KernelChecks."""

    id: int
    document: Document


class AskRecordings(msgspec.Struct, frozen=True, tag="ask-recordings", tag_field="type"):
    """What `mugraph record` has seen of the file's functions. Answer: Recordings."""

    id: int
    document: Document


class AskReport(msgspec.Struct, frozen=True, tag="ask-report", tag_field="type"):
    """What `mugraph doctor` says here, and how the engine is doing; no source text in it. Answer: Report."""

    id: int


class Ping(msgspec.Struct, frozen=True, tag="ping", tag_field="type"):
    """Answer: Pong, at once, whatever runs."""

    id: int


class Exit(msgspec.Struct, frozen=True, tag="exit", tag_field="type"):
    """End everything the engine has started, then the engine, with 0, within 200 ms. Open requests get no answer."""


# --- from the engine -------------------------------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag="ready", tag_field="type"):
    """versions: of "mugraph", "torch", "triton" ("none" where there is none) and "python"; python: the interpreter.
    problems: what keeps the engine from working here, one sentence each; then Find and Search fail."""

    id: int
    versions: dict[str, str]
    python: str
    pid: int
    device: Device
    protocol: int = PROTOCOL
    problems: list[str] = []


class Configured(msgspec.Struct, frozen=True, tag="configured", tag_field="type"):
    id: int
    settings: Settings


class Found(msgspec.Struct, frozen=True, tag="found", tag_field="type"):
    """All regions of the document at this version; none that are not here exist any more.

    errors: about the whole file (it cannot be parsed, imported, it ran for too long), one sentence each
    """

    id: int
    uri: str
    version: int
    regions: list[Region]
    errors: list[str] = []
    seconds: float = 0.0


class RegionChanged(msgspec.Struct, frozen=True, tag="region", tag_field="type"):
    """The region's state from now on, in place of the one before. number, of: which of the regions being searched."""

    id: int
    uri: str
    version: int
    region: Region
    number: int = 0
    of: int = 0


class Progress(msgspec.Struct, frozen=True, tag="progress", tag_field="type"):
    """what: "tracing model.py", "searching f", "measuring f", ...; key: None while the document is being traced.

    number, of: which of the regions being searched, from 0. done, total: how far `what` is; 0 where it cannot be said
    """

    id: int
    uri: str
    version: int
    key: str | None
    what: str
    number: int = 0
    of: int = 0
    topologies: int = 0
    seconds: float = 0.0
    done: int = 0
    total: int = 0


class FirstHit(msgspec.Struct, frozen=True, tag="first-hit", tag_field="type"):
    """The first verified topology, `seconds` into its search. It is no kernel yet, and cannot be applied."""

    id: int
    uri: str
    version: int
    key: str
    seconds: float
    block_ops: int


class BetterHit(msgspec.Struct, frozen=True, tag="better-hit", tag_field="type"):
    """A verified candidate, expected to be the fastest so far, by the cost model."""

    id: int
    uri: str
    version: int
    key: str
    candidate: Candidate


class AnotherHit(msgspec.Struct, frozen=True, tag="another-hit", tag_field="type"):
    """A verified candidate that is not expected to be faster, or one told of before, in whose place this stands: it has
    a time now."""

    id: int
    uri: str
    version: int
    key: str
    candidate: Candidate


class Finished(msgspec.Struct, frozen=True, tag="finished", tag_field="type"):
    """outcome "failed": message says why. "cancelled", "superseded": what had been found stays, and can be used."""

    id: int
    uri: str
    version: int
    outcome: Literal["done", "cancelled", "superseded", "failed"]
    message: str = ""
    seconds: float = 0.0


class Edit(msgspec.Struct, frozen=True, tag="edit", tag_field="type"):
    """Changes to the document at `version`, and files beside it. Edits are ordered and do not overlap.

    create: path -> text of files that must not exist yet. delete: paths of files nothing else needs. label: for undo
    """

    id: int
    uri: str
    version: int
    edits: list[TextEdit]
    label: str
    create: dict[str, str] = {}
    delete: list[str] = []
    notes: list[str] = []


class Drawing(msgspec.Struct, frozen=True, tag="drawing", tag_field="type"):
    """text: the tree, or a complete SVG document. In that of the whole graph a box has an attribute `data-source`: the
    places of the code it comes from, as positions in the region's `statements`, with spaces between them."""

    id: int
    uri: str
    key: str
    form: Literal["text", "svg", "overview"]
    text: str


class KernelPreview(msgspec.Struct, frozen=True, tag="kernel-preview", tag_field="type"):
    """module_path, module_text: of the kernel module. before, after: the document's whole text."""

    id: int
    uri: str
    version: int
    module_path: str
    module_text: str
    before: str
    after: str


class KernelChecks(msgspec.Struct, frozen=True, tag="kernel-checks", tag_field="type"):
    id: int
    uri: str
    version: int
    checks: list[KernelCheck]


class Recordings(msgspec.Struct, frozen=True, tag="recordings", tag_field="type"):
    """Per function the most frequent first."""

    id: int
    uri: str
    recordings: list[Recording]


class Report(msgspec.Struct, frozen=True, tag="report", tag_field="type"):
    """jobs: documents with open jobs, the running one first. errors: the last ones, without source text."""

    id: int
    findings: list[Finding]
    versions: dict[str, str]
    device: Device
    settings: Settings
    log_path: str
    jobs: list[str]
    errors: list[str]
    uptime_s: float
    restarts: int


class Pong(msgspec.Struct, frozen=True, tag="pong", tag_field="type"):
    id: int


class Failed(msgspec.Struct, frozen=True, tag="failed", tag_field="type"):
    """The answer to a request that cannot be met. message: one sentence for the user, or "cancelled", "superseded"."""

    id: int | None
    message: str


class Log(msgspec.Struct, frozen=True, tag="log", tag_field="type"):
    """For the server's log."""

    level: Literal["debug", "info", "warning", "error"]
    message: str


class Notice(msgspec.Struct, frozen=True, tag="notice", tag_field="type"):
    """Something the user should know that no request asked for: the store cannot be written, a process died."""

    message: str


ToEngine = (
    Hello | Configure | Find | Search | Prioritise | Cancel | CancelDocument | Close | PrepareEdit | PrepareRevert
    | InsertShapes | Draw | Preview | CheckKernels | AskRecordings | AskReport | Ping | Exit
)  # fmt: skip
FromEngine = (
    Ready | Configured | Found | RegionChanged | Progress | FirstHit | BetterHit | AnotherHit | Finished | Edit
    | Drawing | KernelPreview | KernelChecks | Recordings | Report | Pong | Failed | Log | Notice
)  # fmt: skip
