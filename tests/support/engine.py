"""The real engine, but that what imports PyTorch for it is forked (forks.py).

Arguments: the sockets of two fork servers, for tracing and for Triton's interpreter; with `runner` after them, it is
the engine's runner.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mugraph.worker.processes import adopt_orphans
from mugraph.worker.streams import claim

REPOSITORY = Path(__file__).parents[2]


def command(tracing: str, interpreting: str) -> tuple[str, ...]:
    return (sys.executable, str(Path(__file__)), tracing, interpreting)


def main() -> None:
    source, sink = claim()
    adopt_orphans()
    del sys.path[0]
    tracing, interpreting, *runner = sys.argv[1:]
    if not runner:
        from mugraph.worker.front import Front

        Front(source, sink, (*command(tracing, interpreting), "runner")).serve()
        return
    from mugraph.worker.running import Runner

    sys.path.append(str(REPOSITORY))
    from tests.support.forks import ForkServer, forked

    with forked(ForkServer(tracing), ForkServer(interpreting)):
        Runner(source, sink).serve()


if __name__ == "__main__":
    main()
