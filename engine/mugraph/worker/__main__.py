"""`python -m mugraph.worker`: the engine process, which speaks `mugraph.protocol` on standard input and output."""

from __future__ import annotations

import sys

from mugraph.dependencies import sentence
from mugraph.worker.streams import claim


def main() -> None:
    source, sink = claim()
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]  # where the process was started; the workspace's files must not hide the libraries'
    try:
        serve(source, sink)
    except ModuleNotFoundError as error:
        if (lacking := sentence(error.name or "")) is None:
            raise
        sys.exit(f"mugraph: {lacking}")  # the server shows the last words of an engine that does not start


def serve(source: int, sink: int) -> None:
    import logging
    import signal

    from mugraph.bytecode import BYTECODE, keep_bytecode
    from mugraph.store.place import cache_folder
    from mugraph.worker.front import Front
    from mugraph.worker.processes import adopt_orphans
    from mugraph.worker.temporary import own_folder

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    keep_bytecode(cache_folder() / BYTECODE)
    adopt_orphans()
    front = Front(source, sink, temporary=own_folder())

    def end(_: int, __: object) -> None:
        front.close()

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    front.serve()


if __name__ == "__main__":
    main()
