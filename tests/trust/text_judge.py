"""What is true of a mutant of a kernel's text: it runs in Triton's interpreter, on numbers, and is compared with
float64. Nothing here is shared with the check of the text. All types are float32 here, so that what is told apart is
what the texts compute, and not how they round.

Inputs and what the launcher allocates lie between guards of NaN: what is read there shows in the result, what is
written there shows in the guard. A process of its own: Triton must be told to interpret before it is imported, and a
mutant may crash it.

Lines of JSON: {"name", "text"} in, {"truth", "error"} out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_GUARD = 1 << 14
SCALES = (1.0, 5.0, 0.02)
"""Of the inputs: with small ones a changed epsilon shows."""
_WORSE, _LEAST = 8.0, 2e-6
"""Errors, of the largest element, that another order of roundings explains: times the original's, and at least."""


class Judge:
    """The other side."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def truth(self, name: str, text: str) -> tuple[str, float]:
        """One of: equal, wrong, outside (writes outside of its tensors), fails."""
        self.ask(name, text)
        return self.answer()

    def ask(self, name: str, text: str) -> None:
        if self._child is None or self._child.poll() is not None:
            env = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.trust.text_judge"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
            )  # fmt: skip
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(json.dumps({"name": name, "text": text}) + "\n")
            self._child.stdin.flush()

    def answer(self) -> tuple[str, float]:
        child = self._child
        assert child is not None
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            child.kill()
            child.wait()
            self._child = None
            return "fails", float("inf")
        answer = json.loads(line)
        return answer["truth"], answer["error"]

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()


def main() -> None:
    import numpy as np
    import torch

    from tests.engine.codegen.reference import reference
    from tests.trust.text_pool import entry

    guarded: list[tuple[Any, Any]] = []

    def between(count: int, dtype: Any, fill: Any) -> Any:
        whole = torch.full((count + 2 * _GUARD,), float("nan"), dtype=dtype)
        inner = whole[_GUARD : _GUARD + count]
        if fill is not None:
            inner.copy_(fill)
        guarded.append((whole, count))
        return inner

    def empty(size: Any, *_: Any, device: Any = None, dtype: Any = torch.float32) -> Any:
        return between(int(np.prod(size)), dtype, None).view(size)

    def intact() -> bool:
        return all(
            bool(whole[:_GUARD].isnan().all()) and bool(whole[_GUARD + count :].isnan().all())
            for whole, count in guarded
        )

    def judged(name: str, text: str, folder: Path, number: int, own: list[float]) -> tuple[str, float]:
        """own: the errors of the original, at each scale; empty to find them out"""
        one = entry(name)
        path = folder / f"mutant_{number}.py"
        path.write_text(text.replace("bfloat16", "float32").replace("float16", "float32"))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        errors: list[float] = []
        for at, scale in enumerate(SCALES):
            guarded.clear()
            worst = 0.0
            generator = torch.Generator().manual_seed(7)
            arguments, arrays = [], {}
            for tensor in (one.block.tensor(tensor.name) for tensor in one.source.inputs):
                shape = tensor.shape(one.block.sizes)
                span = 1 + sum((n - 1) * s for n, s in zip(shape, tensor.strides, strict=True))
                drawn = torch.randn(span, generator=generator) * scale
                memory = between(span, torch.float32, drawn)
                arguments.append(memory.as_strided(shape, tensor.strides, memory.storage_offset()))
                arrays[tensor.name] = arguments[-1].double().numpy()
            results = getattr(module, one.launcher)(*arguments)
            results = results if isinstance(results, tuple) else (results,)
            if not intact():
                return "outside", float("inf")
            with np.errstate(all="ignore"):
                expected = reference(one.block, arrays)
            outputs = [*one.source.outputs]
            for tensor, result in zip(outputs, results, strict=True):
                want, got = expected[tensor.name], result.double().numpy()
                if got.shape != want.shape:
                    return "wrong", float("inf")
                error = float(np.abs(got - want).max() / max(float(np.abs(want).max()), 1e-30))
                worst = max(worst, error if np.isfinite(error) else float("inf"))
            errors.append(worst)
            if own and worst > max(_WORSE * own[at], _LEAST):
                return "wrong", worst
        if not own:
            known[name] = errors
        return "equal", max(errors)

    original = torch.empty
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="mugraph-judge-") as folder:
        for number, line in enumerate(sys.stdin):
            asked = json.loads(line)
            name = asked["name"]
            torch.empty = empty  # type: ignore[assignment]
            try:
                if name not in known:
                    judged(name, entry(name).source.standalone(), Path(folder), -number - 1, [])
                truth, error = judged(name, asked["text"], Path(folder), number, known[name])
            except Exception:
                truth, error = "fails", float("inf")
            finally:
                torch.empty = original
            answers.write(json.dumps({"truth": truth, "error": error if error < 1e300 else 1e300}) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
