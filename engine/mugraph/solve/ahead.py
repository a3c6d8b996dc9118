"""The kernels of a module, to be compiled ahead in other processes.

The module itself imports half of PyTorch's compiler, which takes a process seconds. Each kernel's own text does not,
and is the same to Triton where it begins at the same line: that is a part of the keys of its cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mugraph.ir.kernel import KernelSource
from mugraph.tune.messages import InputSpec, Subject


def kernels_of_module(text: str, sources: Iterable[KernelSource]) -> Iterator[tuple[Subject, tuple[InputSpec, ...]]]:
    """Without those that the module has in other words, as under another name. With a range: at the largest size."""
    for source in sources:
        jit, alone = source.jit.strip(), source.standalone()
        if not jit or jit not in text:
            continue
        lines = _line(text, jit) - _line(alone, jit)
        if lines < 0:
            continue
        inputs = tuple(
            InputSpec(one.memory_shape(source.sizes), one.strides, one.dtype, skew=one.skew) for one in source.inputs
        )
        yield Subject(source.name, "\n" * lines + alone, f"launch_{source.name}"), inputs


def _line(text: str, part: str) -> int:
    return text.count("\n", 0, text.index(part))
