"""One temporary folder for the engine and all that it starts, gone at its end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mugraph.protocol.temporary import VARIABLE
from mugraph.scratch import inside


def own_folder() -> Path:
    """A new folder, in which this process and its children make their temporary files from now on."""
    named = os.environ.pop(VARIABLE, None)
    try:
        if named is None:
            raise FileNotFoundError
        os.mkdir(named, 0o700)
    except OSError:  # no server named one, or it runs on another machine
        named = tempfile.mkdtemp(prefix="mugraph-engine-")
    os.environ.update(inside(named))
    tempfile.tempdir = named
    return Path(named)
