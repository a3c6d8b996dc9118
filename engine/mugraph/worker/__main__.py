"""`python -m mugraph.worker`: the engine process, which speaks `mugraph.protocol` on standard input and output."""

from __future__ import annotations

import sys

from mugraph.worker.streams import claim


def main() -> None:
    source, sink = claim()
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]  # where the process was started; the workspace's files must not hide the libraries'
    import logging
    import signal

    from mugraph.worker.front import Front
    from mugraph.worker.processes import adopt_orphans

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    adopt_orphans()
    front = Front(source, sink)

    def end(_: int, __: object) -> None:
        front.close()

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    front.serve()


if __name__ == "__main__":
    main()
