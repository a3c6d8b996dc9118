"""Ways to change a program after its kernels were applied: what one is, and what it is done to.

A change is a function of a Case: it changes the model, its classes, its module, its inputs or PyTorch itself, and
returns the results to compare, or None for those of a plain run. Each side (original, edited) has a process of its own
in which the program is imported by its own name, so that a change does the same to both.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from torch import nn

PROGRAMS = Path(__file__).parent / "programs"
THEMES = tuple(
    sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.read_text().startswith('"""Changes '))
)
"""The files that have changes."""

Runs = Literal["original", "kernel", "any"]
"""What must run after a change: the original's code, to the bit; a kernel, within the float rule; or either of them."""


@dataclass(frozen=True)
class Program:
    """One function or class of a file in `programs`. shapes: of its inputs."""

    file: str
    name: str
    shapes: tuple[tuple[int, ...], ...]


GATED = Program("gated", "Gated", ((6, 32),))
TIED = Program("tied", "Tied", ((8, 32),))
STACKED = Program("stacked", "Stacked", ((6, 32),))
RESIDUAL = Program("residual", "Residual", ((6, 32),))
CONVOLVED = Program("convolved", "Convolved", ((1, 4, 6, 6),))
PRODUCT = Program("plain", "product", ((8, 32), (8, 32), (32, 24)))
FILLED = Program("plain", "filled", ((8, 32), (32, 24)))
WRITTEN = Program("plain", "written", ((8, 32), (8, 32), (32, 32)))
DECORATED = Program("plain", "decorated", ((8, 32), (32, 24)))
BORROWED = Program("borrowed", "Borrowed", ((6, 32),))
ALL = (GATED, TIED, STACKED, RESIDUAL, CONVOLVED, PRODUCT, FILLED, WRITTEN, DECORATED)


@dataclass
class Case:
    """One side of a change: the program as it is imported, an instance (or the function) and its inputs.

    dtype: of all that is drawn. launches: how often a kernel has run since the change began
    warmed: launches of each run that was made to be changed afterwards
    """

    program: Program
    module: ModuleType
    model: Any
    inputs: list[torch.Tensor]
    dtype: torch.dtype
    generator: torch.Generator
    launches: int = 0
    warmed: list[int] = field(default_factory=list[int])

    @classmethod
    def of(cls, program: Program, dtype: torch.dtype) -> Case:
        generator = torch.Generator().manual_seed(zlib.crc32(program.name.encode()))
        module = importlib.import_module(program.file)
        case = cls(program, module, None, [], dtype, generator)
        case.model = case.made()
        case.inputs = [case.randn(*shape) for shape in program.shapes]
        return case

    def made(self) -> Any:
        """The function, or an instance whose parameters are all drawn: zeros and ones would hide what uses them."""
        target = getattr(self.module, self.program.name)
        if not isinstance(target, type):
            return target
        instance: nn.Module = target().eval()
        for name, tensor in (*instance.named_parameters(), *instance.named_buffers()):
            if tensor.is_floating_point():
                drawn = self.randn(*tensor.shape)
                drawn = drawn / tensor.shape[-1] ** 0.5 if tensor.dim() > 1 else 0.5 * drawn
                tensor.data.copy_(0.5 + drawn.abs() if name.endswith("running_var") else drawn)
        return instance

    def randn(self, *shape: int) -> torch.Tensor:
        """The same numbers on each side."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float32).to(self.dtype)

    def parameter(self, *shape: int) -> nn.Parameter:
        return nn.Parameter(self.randn(*shape))

    def run(self, *inputs: Any) -> Any:
        """Without gradients, on these inputs or its own."""
        with torch.no_grad():
            return self.run_with_grad(*inputs)

    def run_with_grad(self, *inputs: Any) -> Any:
        torch.manual_seed(7)
        return self.model(*(inputs or self.inputs))

    def warm(self, run: Callable[[], Any] | None = None) -> None:
        """Runs it as it is now: what a guard keeps of this run must not outlive what comes then."""
        if run is None:
            self.run(*(one.clone() for one in self.inputs))  # it may write to them
        else:
            run()
        self.warmed.append(self.launches)
        self.launches = 0


@dataclass(frozen=True)
class Change:
    """edits: file -> (old text, new text), made in the program's files before it is imported.

    lasting: what it changes outlives its model (classes, code, PyTorch itself): each side has a process of its own, and
    the change is made before the program's first run and after it, as guards may keep what they saw then
    """

    name: str
    program: Program
    runs: Runs
    make: Callable[[Case], Any]
    edits: Mapping[str, tuple[str, str]]
    lasting: bool


CHANGES: dict[str, Change] = {}
Register = Callable[[Callable[[Case], Any]], Callable[[Case], Any]]


def _registered(
    runs: Runs, programs: tuple[Program, ...], edits: Mapping[str, tuple[str, str]] | None, lasting: bool
) -> Register:
    def register(make: Callable[[Case], Any]) -> Callable[[Case], Any]:
        for program in programs:
            name = make.__name__ if len(programs) == 1 else f"{make.__name__}-{program.name.lower()}"
            assert name not in CHANGES, f"two changes are called {name}"
            CHANGES[name] = Change(name, program, runs, make, edits or {}, lasting)
        return make

    return register


def original_runs(
    *programs: Program, edits: Mapping[str, tuple[str, str]] | None = None, lasting: bool = False
) -> Register:
    """A change after which the original's code must run, and no kernel."""
    return _registered("original", programs, edits, lasting)


def kernel_runs(*programs: Program, lasting: bool = False) -> Register:
    """A change that a kernel is right after, and after which it must still run."""
    return _registered("kernel", programs, None, lasting)


def either_runs(
    *programs: Program, edits: Mapping[str, tuple[str, str]] | None = None, lasting: bool = False
) -> Register:
    """A change that a kernel is right after; that it still runs is not asked."""
    return _registered("any", programs, edits, lasting)


def all_changes() -> dict[str, Change]:
    for theme in THEMES:
        importlib.import_module(f"tests.changes.{theme}")
    return CHANGES
