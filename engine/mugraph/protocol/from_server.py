"""What the server says to the engine. See `messages` for the exchanges."""

from __future__ import annotations

from typing import Literal

import msgspec

from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Document, Priority
from mugraph.protocol.version import PROTOCOL


class Hello(msgspec.Struct, frozen=True, tag="hello", tag_field="type"):
    """The first message. Answer: Ready; or Failed, and the engine ends, when it speaks another protocol.

    root: folder of the workspace on the engine's machine; the engine works from it. None: from where it was started
    """

    id: int
    protocol: int = PROTOCOL
    client: str = ""
    root: str | None = None
    settings: EngineSettings = EngineSettings()


class Configure(msgspec.Struct, frozen=True, tag="configure", tag_field="type"):
    """Answer: Configured, or Failed with a sentence about the wrong value (all stay as they were). Jobs that run keep
    what they began with."""

    id: int
    settings: EngineSettings


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
