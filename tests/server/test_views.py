"""Views as functions of region states: every state has its words, and only what holds now is called verified."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from lsprotocol import types
from mugraph.protocol import values as v
from mugraph_server.abilities import Abilities, read
from mugraph_server.documents.source import Document, Source
from mugraph_server.documents.text import Text
from mugraph_server.engine.state import EngineStatus
from mugraph_server.region_marks import Mark, Pace, to_range
from mugraph_server.regions import FileState
from mugraph_server.views import code_actions, code_lens, diagnostics, hover, inlay_hints, search
from mugraph_server.views.progress import progress
from mugraph_server.views.status import EngineView, status
from mugraph_server.views.ways import with_others

from tests.server.support.texts import IMPROVED

_STATES: Sequence[v.RegionStatus] = get_args(v.RegionStatus)
_PLACE = v.Range(v.Position(5, 11), v.Position(5, 28))
_HEAD = v.Range(v.Position(4, 0), v.Position(4, 5))
_MEASURED = v.Timing("measured", "NVIDIA H200", "CUDA events", 16.4, 9.1, 1.8)
_ESTIMATED = v.Timing("estimated", "h100", "cost model", 31.2, 22.4, 1.39)
_ALL = types.Range(types.Position(0, 0), types.Position(9, 0))
_CAN = Abilities(edits=True, creates=True, resolves=True, commands=frozenset({"mugraph.showChange"}))


def _region(state: v.RegionStatus, timing: v.Timing | None = _MEASURED) -> v.Region:
    improved = state == "improved"
    return v.Region(
        "key",
        "f",
        _PLACE,
        _HEAD,
        state,
        f"f: {state}",
        [_PLACE],
        verified=improved,
        applicable=improved,
        evidence=["equal over finite fields"] if improved else [],
        timing=timing if improved else None,
        id="0123456789" if improved else "",
    )


def _made(
    state: v.RegionStatus, timing: v.Timing | None = _MEASURED, previous: bool = False, **changes: object
) -> tuple[Source, Document, FileState]:
    document = Document("file:///a.py", 1, Text(IMPROVED))
    source = Source("file:///a.py", "/a.py", "file", [document])
    before = _region("improved", timing) if previous else None
    mark = Mark(
        _region(state, timing), to_range(_PLACE), to_range(_HEAD), (to_range(_PLACE),), previous=before, pace=Pace()
    )
    file = FileState("file:///a.py", marks=(mark,), searching=state in ("queued", "searching"))
    return source, document, replace(file, **changes)  # pyright: ignore[reportArgumentType]


def _words(made: tuple[Source, Document, FileState]) -> str:
    """All that is shown, in one text."""
    source, document, file = made
    context = types.CodeActionContext([])
    shown = [
        [lens.command.title for lens in code_lens.lenses(*made) if lens.command],
        [one.message for one in diagnostics.diagnostics(*made, related=True)],
        [one.label for one in inlay_hints.inlay_hints(*made, _ALL)],
        [one.title for one in code_actions.actions(*made, context, _ALL, _CAN)],
        hover.content(source, file, file.marks[0], "tree", False, frozenset()).value,
    ]
    assert document is source.documents[0]
    return str(shown)


@pytest.mark.parametrize("previous", [False, True])
@pytest.mark.parametrize("state", _STATES)
def test_the_slot_above_a_function_is_never_empty(state: v.RegionStatus, previous: bool) -> None:
    made = _made(state, previous=previous)
    (lens,) = code_lens.lenses(*made)
    assert lens.command is not None
    assert lens.command.title
    assert lens.range.start.line == 4
    assert all(one.severity is types.DiagnosticSeverity.Hint for one in diagnostics.diagnostics(*made, related=True))


@pytest.mark.parametrize("previous", [False, True])
@pytest.mark.parametrize("state", [state for state in _STATES if state != "improved"])
def test_only_improved_is_verified(state: v.RegionStatus, previous: bool) -> None:
    words = _words(_made(state, previous=previous))
    assert ", verified" not in words
    assert "Replace" not in words
    if previous and state in ("queued", "searching", "stale"):
        assert "1.80×" in words


@pytest.mark.parametrize(("name", "value"), [("broken", "line 3: invalid syntax"), ("stale", True), ("unjudged", True)])
def test_nothing_is_verified_of_a_text_that_may_be_another(name: str, value: object) -> None:
    assert ", verified" in _words(_made("improved"))
    made = _made("improved")
    setattr(made[2], name, value)
    words = _words(made)
    assert ", verified" not in words
    assert "Replace" not in words
    assert "kernel graph" not in words


def test_broken_code_has_no_diagnostics_and_no_actions() -> None:
    made = _made("improved", broken="line 3: invalid syntax")
    assert diagnostics.diagnostics(*made, related=True) == []
    assert code_actions.actions(*made, types.CodeActionContext([]), _ALL, _CAN) == []


def test_an_estimate_is_called_one() -> None:
    made = _made("improved", _ESTIMATED)
    (lens,) = code_lens.lenses(*made)
    assert lens.command is not None
    assert lens.command.title == "about 1.4× by estimate, verified: replace with the Triton kernel"
    (hint,) = inlay_hints.inlay_hints(*made, _ALL)
    assert hint.label == "about 1.4× by estimate with mugraph"
    (found,) = diagnostics.diagnostics(*made, related=True)
    assert found.message == "about 1.4× by estimate, verified; estimated for h100, not measured: 22.4 µs against 31.2"


def test_every_place_that_shows_an_estimate_says_so() -> None:
    made = _made("improved", _ESTIMATED)
    source, document, file = made
    (mark,) = file.marks
    (lens,) = code_lens.lenses(*made)
    replace_it = code_actions.actions(*made, types.CodeActionContext([]), _ALL, _CAN)[0].title
    assert replace_it == "Replace with generated Triton kernel (about 1.4× by estimate)"
    shown = {
        "lens": lens.command.title if lens.command is not None else "",
        "inlay": str(inlay_hints.inlay_hints(*made, _ALL)[0].label),
        "its tooltip": str(inlay_hints.inlay_hints(*made, _ALL)[0].tooltip),
        "diagnostic": diagnostics.diagnostics(*made, related=True)[0].message,
        "hover": hover.content(source, file, mark, None, False, frozenset()).value,
        "graph panel": search.search(source, document, file, mark)["message"],
        "code action": replace_it,
        "status": status([file], [], True, True)["message"],
    }
    assert {place for place, words in shown.items() if "estimate" not in words} == set()
    for state in ("queued", "searching", "stale"):
        words = _words(_made(state, _ESTIMATED, previous=True))
        assert words.count("before:") == words.count("before: about 1.4× by estimate") > 0


def test_a_measured_one_is_no_estimate() -> None:
    _, _, file = _made("improved")
    assert status([file], [], True, True)["message"] == "1 faster"
    assert "estimate" not in _words(_made("improved"))


def test_a_share_of_the_run_is_shown_with_what_the_gain_is_worth() -> None:
    source, document, file = _made("improved")
    fitting = "made for 4 of 12 recorded calls; in others x is None, the kernel is for a tensor (8)"
    share = v.Share(0.31, 0.2, 12, whole=True, overall=1.13, fitting=fitting)
    (mark,) = file.marks
    file.marks = (replace(mark, region=msgspec.structs.replace(mark.region, share=share)),)
    said = "31 % of the run; 1.80× here is 1.13× overall; made for 4 of 12 recorded calls"
    (lens,) = code_lens.lenses(source, document, file)
    assert lens.command is not None
    assert lens.command.title.endswith(f"replace with the Triton kernel ({said})")
    assert f"{said}; in others x is None" in hover.content(source, file, file.marks[0], None, False, frozenset()).value
    assert search.search(source, document, file, file.marks[0])["share"] == said
    file.marks = (replace(mark, region=msgspec.structs.replace(_region("no-gain"), share=v.Share(0.004, 0, 1))),)
    (lens,) = code_lens.lenses(source, document, file)
    assert lens.command is not None
    assert lens.command.title.endswith("(less than 1 % of the run)")


def test_ways_of_calling_are_shown_and_replaced_together() -> None:
    source, document, file = _made("improved")
    (mark,) = file.marks
    fitting = "made for 4 of 12 recorded calls; in others x is None, the kernel is for a tensor (8)"
    share = v.Share(0.31, 0.2, 12, whole=True, overall=1.13, fitting=fitting)
    other = msgspec.structs.replace(_region("improved", _ESTIMATED), key="other", share=share)
    worse = msgspec.structs.replace(_region("no-gain"), key="worse")
    file.marks = (*file.marks, replace(mark, region=other), replace(mark, region=worse))
    (hint,) = inlay_hints.inlay_hints(source, document, file, _ALL)
    assert hint.label == "1.80× on the device; for other calls about 1.4× by estimate with mugraph"
    commands = [lens.command for lens in code_lens.lenses(source, document, file)]
    assert [one.arguments for one in commands if one is not None][:2] == [["file:///a.py", ["key", "other"]]] * 2
    found = code_actions.actions(source, document, file, types.CodeActionContext([]), _ALL, _CAN)
    assert [one.title for one in found] == [
        "Replace with generated Triton kernels (1.80× on the device; for other calls about 1.4× by estimate)",
        "Show the change first",
        "Search again",
    ]
    said = hover.content(source, file, mark, None, False, frozenset()).value
    assert "For other calls (made for 4 of 12 recorded calls): about 1.4× by estimate" in said
    assert "For other calls: f: no-gain" in said
    assert with_others(file, ["other"]) == ["other", "key"]
    assert with_others(file, ["worse"]) == ["worse", "key", "other"]


def test_hints_only_where_they_are_asked_for() -> None:
    elsewhere = types.Range(types.Position(6, 0), types.Position(9, 0))
    assert inlay_hints.inlay_hints(*_made("improved"), elsewhere) == []


def test_a_picture_that_a_hover_cannot_hold_is_left_out() -> None:
    source, _, file = _made("improved")
    small = hover.content(source, file, file.marks[0], "<svg/>", True, frozenset()).value
    assert base64.b64encode(b"<svg/>").decode() in small
    large = hover.content(source, file, file.marks[0], "<svg>" + "x" * 90_000, True, frozenset()).value
    assert "base64" not in large
    assert "1.80× on the device" in large
    assert len(large) < 100_000


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (None, 3),
        ("", 3),
        ("refactor", 3),
        ("refactor.rewrite", 3),
        ("refactor.rewrite.mugraph", 3),
        ("refactor.rewrite.mug", 0),
        ("refactor.extract", 0),
        ("quickfix", 0),
        ("source", 0),
        ("source.fixAll", 0),
        ("source.fixAll.mugraph", 0),
    ],
)
def test_kinds_are_hierarchies(kind: str | None, count: int) -> None:
    only = [kind] if kind is not None else None
    made = _made("improved")
    assert len(code_actions.actions(*made, types.CodeActionContext([], only), _ALL, _CAN)) == count


def test_progress_counts_only_where_there_is_something_to_count() -> None:
    _, _, file = _made("queued", tracing="tracing a.py")
    assert progress(file) == ("tracing a.py", None)
    _, _, file = _made("searching")
    (mark,) = file.marks
    file.marks = (replace(mark, pace=Pace("searching f", 1, 4, 12, 2.0)),)
    assert progress(file) == ("2/4: searching f, 12 topologies in 2 s", 25)


def test_the_most_pressing_state_is_shown() -> None:
    _, _, file = _made("searching")
    engine = EngineView("/w", EngineStatus("running", device="no GPU", target="cpu"), "sm_90")
    gone = EngineView("/v", EngineStatus("errored", "/py is gone"))
    assert status([file], [engine], True, True)["state"] == "searching"
    assert status([], [engine], True, True)["message"] == "nothing to improve found yet"
    said = status([], [engine], True, True)["engines"][0]
    assert (said["device"], said["target"]) == ("no GPU", "sm_90"), "the target need not be the device"
    shown = status([file], [engine, gone], True, True)
    assert (shown["state"], shown["message"]) == ("errored", "/py is gone")
    assert status([file], [gone], True, False)["state"] == "untrusted"
    assert status([file], [gone], False, False)["state"] == "disabled"


def test_a_client_that_says_nothing_of_itself() -> None:
    assert read(types.ClientCapabilities(), {}) == Abilities()
    assert read(types.ClientCapabilities(), {"commands": "no list"}) == Abilities()
