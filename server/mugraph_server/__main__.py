"""`python -m mugraph_server --stdio` or `--tcp PORT`."""

from __future__ import annotations

import sys

from mugraph_server.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
