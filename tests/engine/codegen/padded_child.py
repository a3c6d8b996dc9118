"""Runs kernels in Triton's interpreter on given tensors. Arguments: a folder with NAME.py (a module of a kernel) and
NAME.pt (its launcher's name and arguments); the results are left there as NAME.out. TRITON_INTERPRET is set."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch
from mugraph.verification.interpreter import patch_interpreter

if __name__ == "__main__":
    patch_interpreter()
    for path in sorted(Path(sys.argv[1]).glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        launcher, arguments = torch.load(path.with_suffix(".pt"))
        torch.save(getattr(module, launcher)(*arguments), path.with_suffix(".out"))
