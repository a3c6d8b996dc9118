"""The worker process of processes.py: `python -P -m mugraph.executors.child`, one request at a time.

It imports the search and nothing larger. It ends with its input, so that nothing is left of it when its parent dies;
in the middle of a long task, too.
"""

from __future__ import annotations

import os
from typing import cast

from mugraph.executors.desks import Desks
from mugraph.executors.requests import Do, Leave, Request, Take, Turn
from mugraph.freed_memory import give_back, keep_freed_memory
from mugraph.orphan import end_with_parent
from mugraph.pickled import read_frame, write_frame

_KEPT_BYTES = 1 << 29
"""Of memory, what the process may keep for the next request."""


def main() -> int:
    """0 at the end of its input, or when nobody reads its answers."""
    end_with_parent()
    keep_freed_memory()
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is not taken for an answer
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    desks = Desks()
    while (request := cast("Request | None", read_frame(requests))) is not None:
        answer = None
        match request:
            case Take():
                desks.take(request.number, request.start)
            case Leave():
                desks.leave(request.number)
            case Turn():
                answer = desks.turn(request.number, request.order)
            case Do():
                answer = desks.do(request.task)
        if answer is not None:
            try:
                write_frame(answers, answer)
            except OSError:
                return 0
            give_back(_KEPT_BYTES)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
