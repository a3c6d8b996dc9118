"""Makes changes to edited programs under the watcher of `mugraph check --run`, and says what it says of each.

TRITON_INTERPRET=1. Arguments: a folder with the program in `edited`, then names of changes. Standard output: for
each a JSON list of its name, {why its kernel was not taken ("taken": it was): calls}, and how many calls were only of
other sizes. Each is made in a fork.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from mugraph.recording.inside.mugraph_imports import change_imports
from mugraph.recording.inside.mugraph_watcher.counts import read
from mugraph.recording.inside.mugraph_watcher.install import FOLDER, install
from mugraph.verification.float_child import patch_interpreter

from tests.changes.case import Change, all_changes
from tests.changes.run_child import edited_copy, forked, ran


def watched(change: Change, folder: Path, spool: str) -> dict[str, Any]:
    os.environ[FOLDER] = spool
    install(change_imports)
    return ran(change, folder)


def reasons(change: Change, folder: Path) -> tuple[dict[str, int], int]:
    with tempfile.TemporaryDirectory() as spool, tempfile.TemporaryDirectory() as copy:
        edited = edited_copy(change, folder / "edited", Path(copy, "edited"))
        came = forked(partial(watched, change, edited, spool))
        assert "died" not in came, came["died"]
        counted: dict[str, int] = {}
        of_sizes = 0
        for (_, _, why, sizes), calls in read(Path(spool)).items():
            of_sizes += calls if sizes is not None else 0
            if calls:
                said = why if why is not None else "taken"
                counted[said] = counted.get(said, 0) + calls
        return counted, of_sizes


def main() -> None:
    folder, *names = sys.argv[1:]
    patch_interpreter()
    changes = all_changes()
    for name in names:
        print(json.dumps([name, *reasons(changes[name], Path(folder))]), flush=True)


if __name__ == "__main__":
    main()
