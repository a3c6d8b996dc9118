"""The process that runs emitted kernels: it may crash, hang or be killed; float_test.py is its other side.

One JSON object a line on standard input, one a line on the descriptor that was standard output (prints of kernels go to
standard error). A kernel is tested one scenario a request: others may have the device in between.
Start: python -m mugraph.verification.float_child interpreter|cuda
"""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any, cast

import torch

from mugraph import child_log
from mugraph.freed_memory import give_back, keep_freed_memory
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.orphan import end_with_parent
from mugraph.too_little_memory import in_words, is_of_memory
from mugraph.trace.run.tf32 import take
from mugraph.verification.beside_exact import PIECE
from mugraph.verification.float_inputs import Scenario, make_inputs, scenarios
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_specials import SPECIALS
from mugraph.verification.interpreter import patch_interpreter
from mugraph.verification.lowering.run import beside_calls
from mugraph.verification.pieces import pieces
from mugraph.verification.scenario_run import ScenarioResult, ScenarioRun
from mugraph.verification.threads import threads_for

_log = logging.getLogger("mugraph.verification")

_KEPT_BYTES = 1 << 30
"""Of the device's memory: what the process may keep for the next kernel, and others cannot have."""
_KEPT_HERE_BYTES = 1 << 29
"""Of the computer's memory, likewise."""


@dataclass(frozen=True)
class KernelTest:
    """A kernel that is being tested, scenario by scenario. launch: of its module"""

    program: TensorProgram
    launch: Callable[..., Any]
    request: Mapping[str, Any]
    scenarios: Sequence[Scenario]


def begun(request: Mapping[str, Any], folder: Path) -> KernelTest:
    program = cast(TensorProgram, pickle.loads(base64.b64decode(request["program"])))
    take(program.tf32)  # which a library's kernel goes by
    launch = _load(request["module"], request["launcher"], folder, request["number"])
    return KernelTest(program, launch, request, scenarios(program))


def run(test: KernelTest, position: int, device: torch.device) -> list[ScenarioResult]:
    """One scenario; nothing where the program has no such inputs. Raises MemoryError."""
    program = test.program
    try:
        with threads_for(program):
            return _scenario(test, position, device)
    except Exception as error:
        if not is_of_memory(error):
            raise
        whole = len(list(pieces(program, PIECE, across=True))) == 1
        how = "all of it at once, as it has no axis along which it can be cut" if whole else "piece by piece"
        raise MemoryError(f"{in_words(error)} (the program is compared with float64 {how})") from error


def _scenario(test: KernelTest, position: int, device: torch.device) -> list[ScenarioResult]:
    program, request, scenario = test.program, test.request, test.scenarios[position]
    take(program.tf32)
    generator = torch.Generator(device).manual_seed(request["seed"] + position)
    drawn = make_inputs(program, scenario, generator)
    if drawn is None:
        return []
    # The interpreter is slow, and as deterministic in one scenario as in the next.
    twice = (device.type == "cuda" and scenario not in SPECIALS) or position == 0
    run_once = ScenarioRun(
        program, test.launch, request["inputs"], request["outputs"], scenario, drawn, request["shapes"]
    )
    return [run_once.judged(twice, generator)]


def _load(module: str, launcher: str, folder: Path, number: int) -> Callable[..., Any]:
    # Triton reads a kernel's source from its file.
    path = folder / f"kernel_{number}.py"
    path.write_text(module)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded  # torch.library and Triton look modules up by name
    spec.loader.exec_module(loaded)
    return getattr(loaded, launcher)


def _sentence(error: Exception) -> str:
    """CUDA's errors begin with what happened and end with advice; Triton's begin with the source and end with it."""
    if isinstance(error, MemoryError):
        return str(error) or in_words(error)
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0] if lines[0].startswith('CUDA') else lines[-1]}"


def _lowering(request: Mapping[str, Any]) -> LoweringResult:
    """On the processor, whatever the kernels run on."""
    unit = cast(SearchUnit, pickle.loads(base64.b64decode(request["unit"])))
    take(())
    return beside_calls(unit, request["seed"])


def main() -> None:
    end_with_parent()
    keep_freed_memory()
    kind = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    child_log.write()
    device = torch.device("cuda" if kind == "cuda" else "cpu")
    if kind == "interpreter":
        patch_interpreter()
    name = torch.cuda.get_device_name() if kind == "cuda" else "interpreter"
    test: KernelTest | None = None
    with tempfile.TemporaryDirectory(prefix="mugraph-float-") as folder:
        for line in sys.stdin:
            request = cast("dict[str, Any]", json.loads(line))
            began, broken, left = monotonic(), False, 0
            is_kernel = "scenario" in request
            try:
                found: Sequence[ScenarioResult | LoweringResult] = ()
                if "scenario" in request:
                    position = cast(int, request["scenario"])
                    test = begun(request, Path(folder)) if "module" in request else test
                    assert test is not None
                    tested = run(test, position, device)
                    found = tested
                    if all(one.passed for one in tested):
                        left = len(test.scenarios) - 1 - position
                elif "unit" in request:
                    found = [_lowering(request)]
                else:
                    torch.cuda.empty_cache()
                results = [asdict(result) for result in found]
                answer: dict[str, Any] = {"results": results, "device": name, "error": None}
            except Exception as error:
                _log.info("a kernel failed" if is_kernel else "recorded calls failed", exc_info=True)
                # An illegal access leaves the CUDA context unusable; the parent starts a fresh process.
                broken = kind == "cuda" and is_kernel
                answer = {"results": [], "device": name, "error": _sentence(error)}
            if kind == "cuda" and not broken and not left and torch.cuda.memory_reserved() > _KEPT_BYTES:
                torch.cuda.empty_cache()
            answer |= {
                "number": request["number"],
                "broken": broken,
                "left": left,
                "seconds": monotonic() - began,
            }
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
            if broken:
                return
            if not left:
                test = None
                give_back(_KEPT_HERE_BYTES)


if __name__ == "__main__":
    main()
