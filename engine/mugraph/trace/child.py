"""The process that runs the user's code: `python -m mugraph.trace.child REQUEST RESULT`.

It reads a request (JSON), traces the file, and writes the trace to RESULT. What the user's code prints goes to
standard error; what it raises becomes a sentence in the trace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

import msgspec

from mugraph import child_log
from mugraph.trace.request import Request

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Whoever waits for the trace may be killed, and code that hangs would then hang for ever (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a C library without prctl: the time-out ends it then
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def prepare() -> None:
    """What has to be so before PyTorch is imported."""
    os.environ["TORCH_COMPILE_DISABLE"] = "1"
    os.environ["PYTORCH_JIT"] = "0"  # scripted functions run as the Python they were written in


def main(arguments: list[str]) -> None:
    request = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Request)
    _end_with_parent()
    child_log.write()
    os.dup2(2, 1)  # whatever the user's code prints, from Python or C
    prepare()
    sys.setrecursionlimit(10_000)
    from mugraph.trace.codec import trace_to_json
    from mugraph.trace.file_trace import trace_request
    from mugraph.trace.pytorch import owned

    if request.names:  # before the user's code may add to them
        owned.tell(Path(arguments[1]))
    data = trace_to_json(trace_request(request))
    result = Path(arguments[1])
    unfinished = result.with_suffix(".part")
    unfinished.write_bytes(data)
    unfinished.rename(result)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads and exit handlers of the user's code have had their time


if __name__ == "__main__":
    main(sys.argv[1:])
