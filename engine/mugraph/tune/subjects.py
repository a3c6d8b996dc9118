"""From a subject's source text to a callable. Child process only."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch

from mugraph.tune.messages import REPLAYS, Subject

_modules: dict[str, ModuleType] = {}


def load_module(subject: Subject, folder: Path) -> ModuleType:
    """Import the text as a module from a file (Triton reads kernels back from their file), once: a kernel module
    registers operators, which cannot be done twice. Raises what the text does."""
    digest = hashlib.sha256(subject.source.encode()).hexdigest()[:16]
    if digest in _modules:
        return _modules[digest]
    for name, text in subject.beside:
        (folder / name).write_text(text)
    path = folder / f"subject_{digest}.py"
    path.write_text(subject.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _modules[digest] = module
    return module


def load(subject: Subject, folder: Path) -> Callable[..., object]:
    """The function to run, compiled by torch.compile where the subject says so."""
    function = cast(Callable[..., object], getattr(load_module(subject, folder), subject.function))
    if subject.compiler == "none":
        return function
    # Whatever an earlier subject compiled must not count against this one's recompilation limit.
    torch.compiler.reset()
    mode = None if subject.compiler == "default" else subject.compiler
    compiled = cast(Any, torch).compile(function, mode=mode, dynamic=False, fullgraph=True)
    return compiled if subject.compiler != REPLAYS else _begun_anew(compiled)


def _begun_anew(compiled: Callable[..., object]) -> Callable[..., object]:
    """Each call may write its results where those of the call before are: nobody reads them."""
    mark: Callable[[], None] = cast(Any, torch).compiler.cudagraph_mark_step_begin

    def call(*tensors: torch.Tensor) -> object:
        mark()
        return compiled(*tensors)

    return call
