"""Runs the kernels of constructs.py in Triton's interpreter; prints results as JSON. A process of its own:
TRITON_INTERPRET must be set before triton is imported."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import torch
from mugraph.verification.interpreter import patch_interpreter

from tests.engine.triton_text.constructs import CONSTRUCTS, drawn
from tests.engine.triton_text.texts import HEAD


def main() -> None:
    patch_interpreter()  # takes the first of several configurations: there is no GPU to time them on
    results: dict[str, object] = {}
    for name, construct in CONSTRUCTS.items():
        path = Path(sys.argv[1]) / f"{name}.py"
        path.write_text(HEAD + construct.text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        arguments = [torch.tensor(one, dtype=torch.float32) for one in drawn(construct)]
        results[name] = module.launch(*arguments).to(torch.int64).tolist()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
