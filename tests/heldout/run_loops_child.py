"""Runs a loop with and without kernels on the CPU, in Triton's interpreter; prints what happened as JSON.

Arguments: the original file, the edited one, its kernel module, how many steps. {"error": of the results,
||out - ref|| / ||ref|| with ref the original's, the largest; "launches": each kernel's}. Both files have one class, and
`run(object, steps)`, a list of tensors.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import torch
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.source import Source
from mugraph.verification.interpreter import patch_interpreter

from tests.heldout.run_child import counted, distance, load, made


def main() -> None:
    original_path, edited_path, kernels_path = (Path(argument) for argument in sys.argv[1:4])
    steps = int(sys.argv[4])
    patch_interpreter()
    sys.path.insert(0, str(edited_path.parent))
    original, kernels, edited = load(original_path), load(kernels_path), load(edited_path)
    (entry,) = find_definitions(Source(str(original_path), original_path.read_text())).entries
    launches: list[str] = []
    for launcher in [key for key in vars(kernels) if key.startswith("launch_")]:
        setattr(kernels, launcher, counted(getattr(kernels, launcher), launcher, launches))
    kernels._tested_gpu = lambda kind, index: True
    with torch.no_grad():
        before, after = (module.run(made(module, str(entry.owner), 1), steps) for module in (original, edited))
    error = distance(tuple(after), tuple(tensor.double() for tensor in before))
    print(json.dumps({"error": error, "launches": Counter(launches)}))


if __name__ == "__main__":
    main()
