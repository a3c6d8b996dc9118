"""Tracing a file: the user's code runs in a child process that may do what it likes, for as long as allowed."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from mugraph.child_log import pass_on
from mugraph.ir.region import Trace
from mugraph.scratch import inside, scratch
from mugraph.trace import forked
from mugraph.trace.codec import trace_from_json
from mugraph.trace.picture import Picture
from mugraph.trace.pytorch import owned
from mugraph.trace.report import selected, without_running
from mugraph.trace.request import Request
from mugraph.trace.run.entries import Definitions, RecordedShapes, find_definitions
from mugraph.trace.syntax.callers import Callers, callers_of
from mugraph.trace.syntax.source import Source, read_source

_log = logging.getLogger("mugraph.trace")
_MOST_CALLERS = 8


def trace_file(
    path: Path,
    *,
    source: str | None = None,
    qualname: str | None = None,
    timeout_s: float = 60,
    recorded_shapes: RecordedShapes | None = None,
    pictures: Mapping[str, Picture] | None = None,
    callers: Callers | None = None,
    check: bool = False,
) -> Trace:
    """Finds the regions of a file by running its functions on tensors without contents.

    source:          the text, if it is not what the file holds (an unsaved buffer)
    qualname:        only this function or class
    recorded_shapes: what a run of the user's program has seen, in words
    pictures:        calls of that run, as they were; they come before words
    callers:         files that are run to see how they call this one; None: those of `callers_for`
    check:           run on real tensors and replay every region; what differs is in `errors`

    Never raises because of what the file holds: see `Trace.errors` and each region's status.
    """
    try:
        text = read_source(path) if source is None else source.removeprefix("\ufeff")
    except IsADirectoryError:
        return Trace(str(path), errors=(f"{path} is a directory; give the path of a Python file",))
    except FileNotFoundError:
        return Trace(str(path), errors=(f"{path} does not exist",))
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        return Trace(str(path), errors=(f"{path} cannot be read: {error}",))
    full = str(path.absolute())
    try:
        definitions = find_definitions(Source(full, text), recorded_shapes, pictures=pictures)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        return Trace(full, errors=(f"{path.name} is no valid Python: {error.msg}{where}",))
    except (ValueError, RecursionError, MemoryError) as error:
        return Trace(full, errors=(f"{path.name} is no valid Python: {error or 'nested too deeply'}",))
    if qualname is not None and qualname not in definitions.names:
        return Trace(full, errors=(f"{path.name} has no function or class named {qualname}",))
    callers = callers or _callers_for(definitions, path, qualname)
    if not definitions.entries and not callers.paths:
        return without_running(full, definitions, qualname)
    recorded = {name: dict(shapes) for name, shapes in (recorded_shapes or {}).items()}
    called = [str(one.absolute()) for one in callers.paths]
    seen = dict(pictures or {})
    asked = Request(full, text, qualname, recorded, seen, called, callers.each, check, owned.are_wanted())
    trace = _in_child(asked, timeout_s)
    if not trace.errors or not called or callers.each:
        return trace
    # One of them may be at fault: what the file says by itself does not depend on them
    if not definitions.entries:
        alone = without_running(full, definitions, qualname)
    else:
        alone = _in_child(msgspec.structs.replace(asked, callers=[]), timeout_s)
    names = ", ".join(one.name for one in callers.paths)
    return replace(alone, notices=(*alone.notices, f"how {names} would call it is not known: {trace.errors[0]}"))


def callers_for(
    path: Path,
    text: str,
    *,
    qualname: str | None = None,
    recorded_shapes: RecordedShapes | None = None,
    pictures: Mapping[str, Picture] | None = None,
) -> Callers:
    """Where a file has functions that nothing says the shapes of, the files of its project that import it and say
    shapes. They are run in their order, as far as they are needed."""
    try:
        definitions = find_definitions(Source(str(path.absolute()), text), recorded_shapes, pictures=pictures)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # tracing says so
        _log.debug("nothing is known of %s: %s", path, error)
        return Callers()
    return _callers_for(definitions, path, qualname)


def _callers_for(definitions: Definitions, path: Path, qualname: str | None) -> Callers:
    lacks = any(selected(lack.function, qualname) for lack in definitions.missing)
    wanted = lacks or (definitions.names and not definitions.entries)
    return Callers(tuple(callers_of(path)[:_MOST_CALLERS])) if wanted else Callers()


def begin() -> None:
    """Something will be traced: PyTorch is imported meanwhile, in the process that traces."""
    forked.begin(_environment())


def _in_child(request: Request, timeout_s: float) -> Trace:
    name = Path(request.path).name
    with scratch("trace") as folder:
        asked, result, said = Path(folder, "request.json"), Path(folder, "result.json"), Path(folder, "stderr")
        asked.write_bytes(msgspec.json.encode(request))
        said.touch()
        status = _status((str(asked), str(result)), said, folder, timeout_s)
        if status is None:
            return Trace(request.path, errors=(f"{name} was still running after {timeout_s:g} s and was stopped",))
        if request.names:
            owned.learn(result)
        lines = pass_on(said.read_text(errors="replace").strip().split("\n"))
        if result.exists():
            return trace_from_json(result.read_bytes())
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    last = f": {lines[-1].strip()}" if lines and lines[-1].strip() and status != 0 else ""
    return Trace(request.path, errors=(f"{name} ended the process while being traced (it {how}){last}",))


def _status(arguments: tuple[str, str], said: Path, folder: str, timeout_s: float) -> int | None:
    """Of the process that runs the user's code, negative for a signal; None where it was killed because of the time."""
    environment = inside(folder, _environment())
    try:
        return forked.status(arguments, said, environment, timeout_s)
    except forked.Gone as error:
        _log.debug("a process of its own traces, as no forkserver does: %s", error)
    with said.open("wb") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "mugraph.trace.child", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(child)


def _environment() -> Mapping[str, str]:
    # Python would write bytecode of instrumented files otherwise, and a GPU is not needed to trace
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": ""}


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kills what is left of the child's process group: it may have started processes of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of the group has ended
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
