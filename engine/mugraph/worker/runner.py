"""`python -m mugraph.worker.runner`: the process that traces and searches; see `running`."""

from __future__ import annotations

from mugraph.worker.processes import adopt_orphans
from mugraph.worker.streams import claim


def main() -> None:
    source, sink = claim()
    adopt_orphans()
    from mugraph.worker.running import Runner  # imports may print

    Runner(source, sink).serve()


if __name__ == "__main__":
    main()
