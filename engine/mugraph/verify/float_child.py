"""The process that runs emitted kernels: it may crash, hang or be killed; float_test.py is its other side.

One JSON object a line on standard input, one a line on the descriptor that was standard output (prints of kernels go to
standard error). Start: python -m mugraph.verify.float_child interpreter|cuda
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from mugraph.ir.program import TensorProgram
from mugraph.verify.float_inputs import Scenario, make_inputs, scenarios
from mugraph.verify.torch_reference import EPSILON, TORCH_TYPES, evaluate, outputs

_MULTIPLE = 3.0
_PEAK = 4.0  # the largest of many roundings lies so far above their root mean square
_ACCUMULATION = 8 * 2.0**-24  # float32 accumulators, whose order is the kernel's own


@dataclass(frozen=True)
class ScenarioResult:
    """Errors are norms relative to the reference's: ||out - ref|| / ||ref||."""

    scenario: str
    passed: bool
    reason: str | None
    error: float
    eager_error: float


def run(request: Mapping[str, Any], device: torch.device, folder: Path) -> list[ScenarioResult]:
    """All scenarios of one request; stops after the first that fails."""
    program = cast(TensorProgram, pickle.loads(base64.b64decode(request["program"])))
    launch = _load(request["module"], request["launcher"], folder, request["number"])
    results: list[ScenarioResult] = []
    for position, scenario in enumerate(scenarios(program)):
        generator = torch.Generator(device).manual_seed(request["seed"] + position)
        inputs = make_inputs(program, scenario, generator)
        if inputs is None:
            continue
        # The interpreter is slow, and as deterministic in one scenario as in the next.
        twice = device.type == "cuda" or position == 0
        results.append(_scenario(program, launch, request["inputs"], request["outputs"], scenario, inputs, twice))
        if not results[-1].passed:
            break
    return results


def _scenario(
    program: TensorProgram,
    launch: Callable[..., Any],
    order: Sequence[str],
    names: Sequence[str],
    scenario: Scenario,
    inputs: Mapping[str, Tensor],
    twice: bool,
) -> ScenarioResult:
    def failed(reason: str) -> ScenarioResult:
        return ScenarioResult(scenario, False, f"{reason} ({scenario} inputs)", float("nan"), float("nan"))

    arguments = [inputs[name] for name in order]
    # Whole buffers, so that writes into gaps and guards show too; compared as bits because they hold NaN.
    before = [_bits(argument).clone() for argument in arguments]
    with _poisoned():
        first = _as_tuple(launch(*arguments))
        kept = [result.clone() for result in first]
        second = _as_tuple(launch(*arguments)) if twice else first
    if not all(torch.equal(_bits(a), b) for a, b in zip(arguments, before, strict=True)):
        return failed("the kernel writes to its inputs")
    if len(first) != len(names):
        return failed(f"the launcher returns {len(first)} tensors, not {len(names)}")
    if not all(torch.equal(_bits(a), _bits(b)) for a, b in zip(kept, second, strict=True)):
        return failed("two runs give different results")
    exact = outputs(program, evaluate(program, inputs, rounded=False))
    eager = outputs(program, evaluate(program, inputs, rounded=True))
    worst = (0.0, 0.0)
    for name, result in zip(names, kept, strict=True):
        tensor = program.tensor(name)
        reference, magnitude = exact[name]
        if tuple(result.shape) != tuple(reference.shape) or result.dtype != TORCH_TYPES[tensor.dtype]:
            return failed(f"{name} has shape {tuple(result.shape)} and type {result.dtype}")
        if not bool(torch.isfinite(result).all()):
            return failed(f"{name} holds NaN or infinity")
        # The output's own rounding belongs to the eager program as well.
        rounded = eager[name][0].to(result.dtype).to(torch.float64)
        error, eager_error = result.to(torch.float64) - reference, rounded - reference
        relative = _norm(error) / max(_norm(reference), 1e-300)
        eager_relative = _norm(eager_error) / max(_norm(reference), 1e-300)
        worst = max(worst, (relative, eager_relative))
        scale = magnitude.clamp_min(torch.finfo(result.dtype).tiny)
        scaled, eager_scaled = (error / scale).abs(), (eager_error / scale).abs()
        slack = _coarsest(program) + _ACCUMULATION
        mean, eager_mean = (float(x.square().mean().sqrt()) for x in (scaled, eager_scaled))
        peak, eager_peak = float(scaled.max()), float(eager_scaled.max())
        if mean > _MULTIPLE * eager_mean + slack or peak > _MULTIPLE * eager_peak + _PEAK * slack:
            reason = f"{name} is wrong by {relative:.2g} where eager PyTorch is by {eager_relative:.2g}"
            return ScenarioResult(scenario, False, f"{reason} ({scenario} inputs)", relative, eager_relative)
    return ScenarioResult(scenario, True, None, *worst)


def _coarsest(program: TensorProgram) -> float:
    """One rounding in the coarsest type of the program: kernels round what they feed to tensor cores."""
    return max(EPSILON[tensor.dtype] for tensor in program.tensors)


def _norm(x: Tensor) -> float:
    return float(x.square().sum().sqrt())


def _bits(tensor: Tensor) -> Tensor:
    """All of the memory the tensor lies in, as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _as_tuple(result: Any) -> tuple[Tensor, ...]:
    return tuple(cast("Sequence[Tensor]", result)) if isinstance(result, tuple | list) else (cast(Tensor, result),)


@contextmanager
def _poisoned() -> Generator[None]:
    """torch.empty and its kin give memory full of NaN: an element that is not written shows."""
    names = ("empty", "empty_like", "empty_strided")
    originals: dict[str, Callable[..., Tensor]] = {name: getattr(torch, name) for name in names}

    def poison(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def filled(*args: Any, **kwargs: Any) -> Tensor:
            made = make(*args, **kwargs)
            return made.fill_(float("nan")) if made.is_floating_point() else made

        return filled

    for name, original in originals.items():
        setattr(torch, name, poison(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch, name, original)


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


def patch_interpreter() -> None:
    """Triton's interpreter multiplies the raw bits of bfloat16 in tl.dot; convert both operands to float32 first."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    handle: Any = interpreter.TensorHandle

    def as_float32(operand: Any) -> Any:
        if operand.dtype.scalar == tl.bfloat16:
            return (operand.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return operand.data.astype(np.float32)

    original = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        if {a.dtype.scalar, b.dtype.scalar} <= {tl.bfloat16, tl.float16, tl.float32}:
            product = np.matmul(as_float32(a), as_float32(b)) + d.data
            return handle(product.astype(d.data.dtype), d.dtype.scalar)
        return original(self, a, b, d, *rest)

    builder.create_dot = create_dot


def _sentence(error: Exception) -> str:
    """CUDA's errors begin with what happened and end with advice; Triton's begin with the source and end with it."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0] if lines[0].startswith('CUDA') else lines[-1]}"


def main() -> None:
    kind = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    device = torch.device("cuda" if kind == "cuda" else "cpu")
    if kind == "interpreter":
        patch_interpreter()
    name = torch.cuda.get_device_name() if kind == "cuda" else "interpreter"
    with tempfile.TemporaryDirectory(prefix="mugraph-float-") as folder:
        for line in sys.stdin:
            request = cast("dict[str, Any]", json.loads(line))
            broken = False
            try:
                results = [asdict(result) for result in run(request, device, Path(folder))]
                answer: dict[str, Any] = {"results": results, "device": name, "error": None}
            except Exception as error:
                # An illegal access leaves the CUDA context unusable; the parent starts a fresh process.
                broken = kind == "cuda"
                answer = {"results": [], "device": name, "error": _sentence(error)}
            answers.write(json.dumps({"number": request["number"], "broken": broken, **answer}) + "\n")
            answers.flush()
            if broken:
                return


if __name__ == "__main__":
    main()
