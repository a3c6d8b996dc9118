"""Runs the command line in a folder, with a store of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mugraph_in(folder: Path) -> Callable[..., str]:
    """mugraph(*arguments, **environment): what it prints, where it ends well."""
    paths = [str(folder), str(ROOT / "engine"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    around = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "MUGRAPH_CACHE_DIR": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }

    def mugraph(*arguments: str, **more: str) -> str:
        command = [sys.executable, "-m", "mugraph", *arguments]
        ran = subprocess.run(command, cwd=folder, env={**around, **more}, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return mugraph
