"""Runs programs whose calls have numbers that vary, and the same with kernels written into them, on the CPU.

A process of its own, because TRITON_INTERPRET must be set before triton is imported. Arguments: the original file, the
edited one, the edited one's kernel module. Prints, of each function and each of its calls in `CALLS`, the kernel's and
the original's distance from float64, and the launches; of those in `OWN`, whether both give the same bits, or raise the
same.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from mugraph.verification.interpreter import patch_interpreter

sys.path.insert(0, str(Path(__file__).parent))
from run_child import ARGUMENT, DTYPES, InDoubles, counted, distance, drawn, is_wide, load, tensors


def shapes_in(path: Path) -> dict[str, list[tuple[str, list[int]]]]:
    """The tensors that comments give each function, or a class's method, by the name of what stands outermost."""
    lines, found = path.read_text().splitlines(), dict[str, list[tuple[str, list[int]]]]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(one.lineno for one in (node, *node.decorator_list)) - 2
            said = next(line for line in lines[max(first, 0) : node.end_lineno] if re.search(r"# mugraph: \w+=", line))
            found[node.name] = [(kind, [*map(int, shape.split(","))]) for _, kind, shape in ARGUMENT.findall(said)]
    return found


def program(module: ModuleType, name: str, *, wide: bool) -> Any:
    made = getattr(module, name)
    if not isinstance(made, type):
        return made
    if not issubclass(made, torch.nn.Module):
        return made(0.5).update
    torch.manual_seed(0)
    instance = made().eval()
    return instance.double() if wide else instance


def after(call: Any, inputs: list[torch.Tensor], numbers: list[float]) -> tuple[torch.Tensor, ...]:
    given = [one.clone() for one in inputs]
    return (*tensors(call(*given, *numbers)), *given)


def bits(call: Any, inputs: list[torch.Tensor], numbers: list[float]) -> object:
    """What the call leaves, or raises."""
    try:
        return [one.contiguous().view(torch.uint8).tolist() for one in after(call, inputs, numbers)]
    except (RuntimeError, TypeError) as error:
        return str(error)


def main() -> None:
    original_path, edited_path, kernels_path = (Path(argument) for argument in sys.argv[1:])
    patch_interpreter()
    sys.path.insert(0, str(edited_path.parent))
    original, kernels, edited = load(original_path), load(kernels_path), load(edited_path)
    launches: list[str] = []
    for launcher in [key for key in vars(kernels) if key.startswith("launch_")]:
        setattr(kernels, launcher, counted(vars(kernels)[launcher], launcher, launches))
    kernels._tested_gpu = lambda kind, index: True
    said: dict[str, list[dict[str, Any]]] = {}
    own: list[dict[str, Any]] = []
    for name, shapes in shapes_in(original_path).items():
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        inputs = [drawn(shape, DTYPES[kind], generator) for kind, shape in shapes]
        doubles = [one.double() for one in inputs]
        calls = [program(one, name, wide=wide) for one, wide in ((original, True), (original, False), (edited, False))]
        for numbers in original.CALLS[name]:
            with torch.no_grad():
                with InDoubles():
                    exact = after(calls[0], doubles, numbers)
                eager = after(calls[1], inputs, numbers)
                launches.clear()
                here = after(calls[2], inputs, numbers)
            assert [one.dtype for one in eager] == [one.dtype for one in here]
            rounding = max(torch.finfo(one.dtype).eps for one in eager if is_wide(one))
            errors = {"error": distance(here, exact), "eager": distance(eager, exact), "rounding": rounding}
            said.setdefault(name, []).append({"numbers": numbers, "launches": [*launches], **errors})
        for numbers in original.OWN.get(name, ()):
            launches.clear()
            with torch.no_grad():
                eager, here = (bits(call, inputs, numbers) for call in calls[1:])
            same = eager == here
            own.append({"call": f"{name}{numbers}", "same": same, "launches": [*launches]})
    print(json.dumps({"taken": said, "own": own}))


if __name__ == "__main__":
    main()
