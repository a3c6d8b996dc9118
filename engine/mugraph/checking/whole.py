"""A file of KernelBench's convention as it was and as it is edited, compared as KernelBench compares them: whole, on
the inputs that the file makes, element by element. It runs the user's code, so it is a process of its own:

    python -m mugraph.checking.whole

reads [[ORIGINAL, EDITED], PEERS, SECONDS] as JSON from standard input and prints a line of JSON; where there are peers
another one, with what a call of each takes. After the seconds no other peer is compiled. Without a GPU kernels run in
Triton's interpreter, if TRITON_INTERPRET=1 says so, and nothing is timed.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import torch
from torch.utils._pytree import tree_leaves

from mugraph.checking.bytes_read import bytes_read
from mugraph.checking.drawn import inputs_of, loaded, model_of, on_device
from mugraph.checking.far import Far, FromExact
from mugraph.sharing import turn

_log = logging.getLogger("mugraph.checking")

TRIALS = 5
PATIENCE_S = 8.0
"""No further trial begins after this: inputs of gigabytes are drawn for seconds."""
SEED = 42
TOLERANCES: Mapping[torch.dtype, float] = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""Of an element: absolute, and relative to what it should be. KernelBench's, by the type of the results."""


class _Counts:
    """asked: how often a kernel might have run; taken: how often it did; trials: that were begun."""

    asked = taken = trials = 0


def compare(original: Path, edited: Path, device: torch.device) -> Mapping[str, object]:
    """Raises whatever the user's code raises."""
    before, after = _both(original, edited)
    counts = _Counts()
    _count_calls(edited, counts, device)
    worst, tolerance = 0.0, 0.0
    exact = FromExact()
    began = time.monotonic()
    for trial in range(TRIALS):
        if trial and time.monotonic() - began > PATIENCE_S:
            break
        counts.trials += 1
        inputs = inputs_of(before, SEED + trial, device)
        wanted, found = (_results(module, inputs, SEED + trial, device) for module in (before, after))
        if len(wanted) != len(found):
            return _said(counts, None, tolerance, f"{len(found)} results instead of {len(wanted)}")
        far = Far()
        for one, other in zip(found, wanted, strict=True):
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                of = f"{tuple(one.shape)} {one.dtype}", f"{tuple(other.shape)} {other.dtype}"
                return _said(counts, None, tolerance, f"a result is {of[0]} instead of {of[1]}")
            tolerance = TOLERANCES.get(other.dtype, 0.0)
            far.add(one, other, tolerance)
        worst = max(worst, far.largest)
        if far.largest > 1.0:
            _compare(exact, before, inputs, SEED + trial, device, [*zip(found, wanted, strict=True)])
    return _said(counts, worst, tolerance, None, exact)


def _compare(
    exact: FromExact,
    original: ModuleType,
    inputs: Sequence[object],
    seed: int,
    device: torch.device,
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> None:
    """pairs: of our results and PyTorch's"""
    try:
        truths = _results(original, inputs, seed, device, double=True)
    except RuntimeError as error:  # too little memory, or an operator that knows no doubles
        _log.info("there is no result in double precision: %s", error)
        exact.is_known = False
        return
    for (one, other), truth in zip(pairs, truths, strict=True):
        tolerance = TOLERANCES.get(other.dtype, 0.0)
        exact.ours.add(one, truth, tolerance)
        exact.pytorch.add(other, truth, tolerance)


def _said(
    counts: _Counts, worst: float | None, tolerance: float, why: str | None, exact: FromExact | None = None
) -> Mapping[str, object]:
    right = why is None and worst is not None and worst <= 1.0
    said: dict[str, object] = {}
    if why is None and not right:
        why = f"an element is off by {worst:.3g} times the tolerance"
        if exact is not None and exact.is_known:
            right = exact.explains
            said = {"from_float64": {"ours": _finite(exact.ours.largest), "pytorch": _finite(exact.pytorch.largest)}}
            why += f"; {exact.said}"
    return {
        "right": right,
        "worst": _finite(worst),
        "tolerance": tolerance,
        "trials": counts.trials,
        "calls": counts.asked,
        "taken": counts.taken,
        "why": why,
        **said,
    }


def _finite(error: float | None) -> float | None:
    return error if error is not None and error < float("inf") else None


def _results(
    module: ModuleType, inputs: Sequence[object], seed: int, device: torch.device, *, double: bool = False
) -> list[torch.Tensor]:
    """Of the module's model, which is drawn anew from the seed. The inputs stay as they are.

    double: all of it in double precision
    """
    model = model_of(module, seed, device)
    with turn(alone=False) if device.type == "cuda" else nullcontext(), torch.no_grad():
        model = model.to(device)
        given = on_device(inputs, device)
        if double:
            model = model.double()
            given = [
                one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in given
            ]
        return [one for one in tree_leaves(model(*given)) if isinstance(one, torch.Tensor)]


def times(
    original: Path, edited: Path, device: torch.device, peers: Sequence[str], patience_s: float
) -> Mapping[str, object]:
    """What a call of the whole model takes, before and after. Raises whatever the user's code raises.

    peers: what it is timed beside. patience_s: after which no other peer is compiled
    """
    from mugraph.checking.whole_times import whole_times

    until = time.monotonic() + patience_s
    _forget(edited.parent)
    before, after = _both(original, edited)
    inputs = on_device(inputs_of(before, SEED, device), device)
    ours = model_of(after, SEED, device).to(device)
    return whole_times(model_of(before, SEED, device).to(device), inputs, lambda: ours(*inputs), peers, until)


def _bytes_read(original: Path, device: torch.device) -> int:
    module = loaded(original, "mugraph_before")
    return bytes_read(model_of(module, SEED, device), inputs_of(module, SEED, device))


def _both(original: Path, edited: Path) -> tuple[ModuleType, ModuleType]:
    """The edited one has the edited modules of its folder, where it imports some that are there."""
    before = loaded(original, "mugraph_before")
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "mugraph_before" or file is None or not Path(file).is_relative_to(original.parent):
            continue
        if (edited.parent / Path(file).relative_to(original.parent)).exists():
            del sys.modules[name]
    return before, loaded(edited, "mugraph_after")


def _forget(folder: Path) -> None:
    """Modules of the folder: those that are imported again are as they were before calls were counted in them."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent == folder:
            del sys.modules[name]


def _count_calls(edited: Path, counts: _Counts, device: torch.device) -> None:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None or Path(file).parent != edited.parent or not Path(file).stem.endswith("_mugraph"):
            continue
        if device.type == "cpu":
            vars(module)["_tested_gpu"] = _on_cpu
        for name, value in list(vars(module).items()):
            if name.endswith("_fits") and not name.startswith("_"):
                vars(module)[name] = _counted(value, counts)


def _on_cpu(kind: str, _: int | None) -> bool:
    return kind == "cpu"


def _counted(fits: Callable[..., bool], counts: _Counts) -> Callable[..., bool]:
    def asked(*given: object) -> bool:
        said = fits(*given)
        counts.asked += 1
        counts.taken += bool(said)
        return said

    return asked


def main() -> None:
    asked = sys.stdin.read()
    if not asked.strip():
        return
    files, peers, patience_s = json.loads(asked)
    original, edited = (Path(text).resolve() for text in files)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        from mugraph.verification.interpreter import patch_interpreter

        patch_interpreter()
    found = {**compare(original, edited, device), "bytes": _bytes_read(original, device)}
    if peers and device.type == "cuda":
        print(json.dumps(found), flush=True)  # whatever becomes of the times
        found["times"] = times(original, edited, device, peers, patience_s)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
