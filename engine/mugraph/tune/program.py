"""What an applied program calls, with the user's own objects on a device. Child process only: it runs the user's code.

The edited file is run beside its kernel module in a folder of our own. Then its entry is built as tracing builds it,
from the recorded call where there is one, and run once, while a listener in the place of the region's test notes what
the user's code passes there.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch

from mugraph.nested import Reached, until_called_for
from mugraph.recording.inside.mugraph_watcher.guards import Guards
from mugraph.recording.inside.mugraph_watcher.watch import why_not
from mugraph.trace.picture import imported_as
from mugraph.trace.run.around import as_recorded
from mugraph.trace.run.build import Builder
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.entries import Entry, find_definitions
from mugraph.trace.run.places import Places
from mugraph.trace.syntax.package import package_of
from mugraph.trace.syntax.source import Source
from mugraph.tune.agreeing import agree_on, on_copies
from mugraph.tune.messages import DIFFERS, REFUSED, Agreed, Applied


class NotCalled(Exception):
    """One sentence: why there is no call to time."""


@dataclass(frozen=True)
class Entered:
    """call: the test and the replacement, as the user's code calls them with its own objects. kernels: the module that
    has them; name: of the region"""

    call: Callable[[], object]
    kernels: ModuleType
    name: str

    def differs(
        self, reference: Callable[..., object], *, jumps: bool = False, writes: tuple[int, ...] = ()
    ) -> str | None:
        """Why the kernels are further off than the code on the tensors that the program has there: what rounds more
        than the code does may not matter among random numbers, and matter among the user's. None where they are not,
        or the tensors cannot be told. reference: the region's code, of its tensors; jumps, writes: as of Subject"""
        which = f"_{self.name}_on_tensors" if hasattr(self.kernels, f"_{self.name}_on_tensors") else self.name
        usual: Any = getattr(self.kernels, which)
        seen: list[tuple[torch.Tensor, ...]] = []

        def noting(*given: torch.Tensor | int) -> object:
            seen.append(tuple(one for one in given if isinstance(one, torch.Tensor)))
            return usual(*given)

        ways = [one for one in (which, f"_{self.name}_run") if hasattr(self.kernels, one)]
        before = {one: getattr(self.kernels, one) for one in ways}
        for one in ways:
            setattr(self.kernels, one, noting)
        try:
            with torch.no_grad():
                self.call()
        finally:
            for one, function in before.items():
                setattr(self.kernels, one, function)
        if not seen:
            return None
        agreed = agree_on(on_copies(usual, writes), on_copies(reference, writes), seen[0], jumps=jumps)
        if not isinstance(agreed, Agreed) or agreed.passed:
            return None
        return f"{DIFFERS} by {agreed.error:.2e}, more than {agreed.limit:.2e}, on the program's own tensors"


def entered(applied: Applied, folder: Path, device: str) -> Entered:
    """What the program calls. Raises NotCalled, or what the user's code raises."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        kernels, space = _imported(applied, folder)
        fits: Any = getattr(kernels, applied.fits)
        given = _given(applied, kernels, space, device)
        with torch.no_grad():
            fits(*given)  # at first it may try the kernels, and say what is wrong with them

    def call() -> object:
        if fits(*given):
            return getattr(kernels, applied.name)(*given)
        why = _said(heard, (applied.name, kernels.__name__)) or _why(applied, kernels, given)
        raise NotCalled(f"the guard of {applied.name} {REFUSED} ({why})")

    with torch.no_grad():
        call()
    return Entered(call, kernels, applied.name)


def _said(heard: Sequence[warnings.WarningMessage], names: Sequence[str]) -> str:
    """What the guard, or its module, has said about that: its kernels were tried and found wrong, or are damaged."""
    said = [(name, str(one.message)) for one in heard for name in names if str(one.message).startswith(f"{name}: ")]
    return said[-1][1].removeprefix(f"{said[-1][0]}: ") if said else ""


def _why(applied: Applied, kernels: ModuleType, given: tuple[object, ...]) -> str:
    """Which of the guard's checks says no, now that they are made again."""
    path = str(kernels.__file__)
    with torch.no_grad():
        return why_not(
            Guards(path, ast.parse(applied.module_text)), applied.fits, getattr(kernels, applied.fits), given
        )


def _imported(applied: Applied, folder: Path) -> tuple[ModuleType, dict[str, object]]:
    """The kernel module, and the names of the edited file, run under the names that the user's own have."""
    path = Path(applied.path)
    top, name, package = package_of(path, imported_as(applied.pictures or {}))
    place = folder / f"{path.stem}_{abs(hash((applied.text, applied.module_text))):x}"
    place.mkdir(exist_ok=True)
    for file, text in applied.beside.items():
        (place / file).write_text(text, encoding="utf-8")
    if str(top) not in sys.path:
        sys.path.insert(0, str(top))
    for picture in (applied.pictures or {}).values():
        sys.path += [one for one in picture.around.path if one not in sys.path and Path(one).is_dir()]
    owner = importlib.import_module(package) if package is not None and path.stem != "__init__" else None
    kernels = _run(place / f"{applied.module}.py", applied.module_text, _beside(applied.module, package), package)
    if owner is not None:
        setattr(owner, applied.module, kernels)
    try:
        with until_called_for({*(applied.pictures or {}), *(applied.recorded or {})}):
            _run(place / path.name, applied.text, name, package, path.parent)
    except Reached:
        pass  # what it has defined by then is what the program had
    return kernels, vars(sys.modules[name])


def _beside(module: str, package: str | None) -> str:
    return f"{package}.{module}" if package else module


def _run(path: Path, text: str, name: str, package: str | None, folder: Path | None = None) -> ModuleType:
    """folder: in which the other modules are, if the text is that of a package"""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__package__ = package or ""
    if folder is not None and path.stem == "__init__":
        module.__path__ = [str(folder)]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _Heard(BaseException):
    """The region's test was called. No Exception: the user's code must not catch it."""


def _given(applied: Applied, kernels: ModuleType, space: dict[str, object], device: str) -> tuple[object, ...]:
    """What the user's code passes to the region's test, where that says yes: one function may be called for many sizes,
    as a block of each stage of a network is. What it passes first where the test never says yes."""
    asked: Any = getattr(kernels, applied.fits)
    first: list[tuple[object, ...]] = []

    def listening(*given: object) -> bool:
        if asked(*given):
            raise _Heard(given)
        if not first:
            first.append(given)
        return False

    why = "no run of it reaches the region"
    places = Places(applied.path, space, lambda _: None)
    for entry in _entries(applied):
        setattr(kernels, applied.fits, listening)
        try:
            with torch.no_grad():
                with torch.device(device):
                    torch.random.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
                    ready = Builder(places, None, Constants(real=True), device=device).ready(entry)
                with as_recorded(ready.around):
                    ready.function(*ready.args, **ready.kwargs)
        except _Heard as heard:
            return cast("tuple[object, ...]", heard.args[0])
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason is given'}"
        finally:
            setattr(kernels, applied.fits, asked)
    if first:
        return first[0]
    raise NotCalled(f"{applied.function} cannot be run on the device: {why}")


def _entries(applied: Applied) -> Iterator[Entry]:
    """Those of the region's own function first. They are found in the edited text: its comments and signatures are the
    user's."""
    source = Source(applied.path, applied.text)
    sizes = applied.sizes or {}
    found = find_definitions(
        source, applied.recorded, lambda size: sizes.get(size.name, size.largest), applied.pictures
    ).entries
    yield from sorted(found, key=lambda entry: entry.function != applied.function)
