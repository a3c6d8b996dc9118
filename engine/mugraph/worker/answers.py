"""Questions about what was found: edits, drawings, previews, checks, reports. Values in, values out; no job runs."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from mugraph.dependencies import sentence
from mugraph.edit.revert import reverted
from mugraph.edit.source.text import EditError
from mugraph.ir.drawing import draw_overview, draw_svg, draw_tree
from mugraph.ir.kernel import Rejected
from mugraph.log import log_path
from mugraph.protocol import messages as m
from mugraph.protocol import values
from mugraph.protocol.settings import EngineSettings, declared
from mugraph.protocol.values import Document
from mugraph.recording.memory import recorded
from mugraph.store.keys import versions
from mugraph.targets import TARGETS
from mugraph.tune.device import Device, UnknownTarget, resolve
from mugraph.tune.tuners.choose import cannot
from mugraph.worker.documents import Known
from mugraph.worker.drawn_sources import drawn_sources
from mugraph.worker.edits import text_edits
from mugraph.worker.kernel_checks import check_kernels
from mugraph.worker.prepared import NoKernels, prepared
from mugraph.worker.shape_comment import NoPlace, with_shapes
from mugraph.worker.texts import Unreadable, as_bytes, as_text, read

Question = (
    m.PrepareEdit | m.PrepareRevert | m.InsertShapes | m.Draw | m.Preview | m.CheckKernels | m.AskRecordings
    | m.AskReport
)  # fmt: skip


NOTHING = Device("no GPU", "none", TARGETS["cpu"])
"""While it is not known which GPU is here."""


class NoAnswer(Exception):
    """One sentence for the user."""


@dataclass(frozen=True)
class Engine:
    """How the engine is doing, for a report."""

    device: Device | None
    settings: EngineSettings
    jobs: tuple[str, ...]
    errors: tuple[str, ...]
    uptime_s: float
    restarts: int


def answer(question: Question, known: Known | None, engine: Engine) -> m.FromEngine:
    """known: what is known of the document asked about. Raises NoAnswer."""
    try:
        match question:
            case m.PrepareEdit():
                return _edit(question, known)
            case m.PrepareRevert():
                return _revert(question)
            case m.InsertShapes():
                return _shapes(question)
            case m.Draw():
                return _drawing(question, known)
            case m.Preview():
                return _preview(question, known)
            case m.CheckKernels():
                document = question.document
                checks = check_kernels(_path(document), read(document))
                return m.KernelChecks(question.id, document.uri, document.version, checks)
            case m.AskRecordings():
                return _recordings(question)
            case m.AskReport():
                return _report(question, engine)
    except (EditError, NoKernels, NoPlace, Rejected, Unreadable, UnknownTarget) as error:
        raise NoAnswer(str(error)) from None
    except ModuleNotFoundError as error:  # what draws is imported when something is drawn
        raise NoAnswer(sentence(error.name or "") or str(error)) from None
    except OSError as error:
        raise NoAnswer(f"the system refuses: {error.strerror or error}") from None


def wrong_setting(settings: EngineSettings) -> str | None:
    """One sentence about the first value that cannot be."""
    try:
        resolve(settings.target, NOTHING)
    except UnknownTarget as error:
        return str(error)
    if (why := cannot(settings.tuner)) is not None:
        return why
    for one in declared(EngineSettings):
        value = getattr(settings, one.name)
        if (needed := one.setting.values.needed(value)) is not None:
            said = f"{value:g}" if isinstance(value, int | float) else repr(value)
            return f"{one.setting.called or one.name} is {needed}, not {said}"
    return None


def missing() -> str | None:
    """One sentence about a package without which nothing can be traced."""
    if versions()["torch"] == "none":
        return f"PyTorch is not installed in {sys.executable}; install it there or choose another interpreter"
    return None


def device_value(device: Device) -> values.Device:
    return values.Device(device.name, device.kind, device.target.name, device.driver, device.note)


def _path(document: Document) -> Path:
    return Path(document.path).absolute()


def _edit(question: m.PrepareEdit, known: Known | None) -> m.Edit:
    document = question.document
    before, ready = prepared(document, known, question.keys)
    edits = text_edits(before, as_text(ready.source))
    create = {str(path): text for path, text in ready.created.items()}
    return m.Edit(question.id, document.uri, document.version, edits, "Replace with generated Triton kernel", create)


def _preview(question: m.Preview, known: Known | None) -> m.KernelPreview:
    document = question.document
    before, ready = prepared(document, known, question.keys)
    return m.KernelPreview(
        question.id,
        document.uri,
        document.version,
        str(ready.module),
        ready.module_text,
        before,
        as_text(ready.source),
    )


def _revert(question: m.PrepareRevert) -> m.Edit:
    document = question.document
    before = read(document)
    after, done = reverted(as_bytes(before), _path(document).resolve())
    return m.Edit(
        question.id,
        document.uri,
        document.version,
        text_edits(before, as_text(after)),
        "Revert to PyTorch",
        delete=[str(module) for module in done.deleted],
        notes=[f"kept {module}, which another file imports" for module in done.kept],
    )


def _recordings(question: m.AskRecordings) -> m.Recordings:
    """Those that a comment can describe."""
    document = question.document
    found = [
        values.Recording(name, one.arguments, one.devices, one.calls, one.init)
        for name, sets in recorded(_path(document), read(document)).items()
        for one in sets
        if not one.opaque
    ]
    return m.Recordings(question.id, document.uri, found)


def _shapes(question: m.InsertShapes) -> m.Edit:
    document = question.document
    before = read(document)
    init = question.init
    if init is None and question.arguments is not None:
        known = recorded(_path(document), before).get(question.function, [])
        init = next((one.init for one in known if one.arguments == question.arguments), None)
    after = with_shapes(before, question.function, question.arguments, init)
    return m.Edit(question.id, document.uri, document.version, text_edits(before, after), "Insert shapes")


def _drawing(question: m.Draw, known: Known | None) -> m.Drawing:
    result = known.results.get(question.key) if known is not None else None
    if result is None or result.plan is None:
        raise NoAnswer("there is no μGraph for this code")
    mugraph = result.plan.mugraph
    if question.form == "text":
        text = draw_tree(mugraph, question.width)
    elif question.form == "svg":
        text = draw_svg(mugraph, question.theme, drawn_sources(result.plan))
    else:
        text = draw_overview(mugraph, question.theme)
    return m.Drawing(question.id, question.uri, question.key, question.form, text)


def _report(question: m.AskReport, engine: Engine) -> m.Report:
    from mugraph.reports.findings import findings

    device = engine.device or NOTHING
    found = [values.Finding(one.what, one.found, one.state, one.advice) for one in findings(device)]
    return m.Report(
        question.id,
        found,
        all_versions(),
        device_value(device),
        engine.settings,
        str(log_path()),
        list(engine.jobs),
        list(engine.errors),
        engine.uptime_s,
        engine.restarts,
    )


def all_versions() -> dict[str, str]:
    return {**versions(), "python": platform.python_version()}
