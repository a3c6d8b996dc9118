"""What the engine says to the server. See `messages` for the exchanges."""

from __future__ import annotations

from typing import Literal

import msgspec

from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Candidate, Device, Finding, KernelCheck, Recording, Region, TextEdit
from mugraph.protocol.version import PROTOCOL


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
    settings: EngineSettings


class Found(msgspec.Struct, frozen=True, tag="found", tag_field="type"):
    """All regions of the document at this version; none that are not here exist any more.

    errors: about the whole file (it cannot be parsed, imported, it ran for too long), or about a comment that is not
            read where it stands; one sentence each
    shapes_from: paths of files whose runs say how functions of this one are called
    """

    id: int
    uri: str
    version: int
    regions: list[Region]
    errors: list[str] = []
    seconds: float = 0.0
    shapes_from: list[str] = []


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
    """A verified candidate that is not expected to be faster; or a candidate sent before, which has a time now and
    is replaced by this."""

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
    places of the code it comes from, as positions in the region's `statements`, with spaces between them. An operator
    of a thread graph has one more, `data-thread`: the value that the thread graph computes."""

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
    settings: EngineSettings
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
