"""A Python with all that this one has but some packages."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Collection
from pathlib import Path

import mugraph
import mugraph_server


class BarePython:
    """In a folder of its own. without: modules and distributions, by their names in lower case with underscores.

    What was installed for editing is on its path; its metadata is that of a package like any other.
    """

    def __init__(self, folder: Path, without: Collection[str]) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        (place,) = folder.glob("lib/python*/site-packages")
        for packages in (Path(one) for one in sys.path if one.endswith("site-packages")):
            for entry in packages.iterdir():
                name = re.split(r"-\d|\.", entry.name.lower())[0].replace("-", "_")
                if name not in without and entry.suffix != ".pth" and not (place / entry.name).exists():
                    (place / entry.name).symlink_to(entry)
        ours = [Path(package.__file__ or "").parents[1] for package in (mugraph, mugraph_server)]
        (place / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
        self.path = folder / "bin" / "python"

    def run(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.path), "-P", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
