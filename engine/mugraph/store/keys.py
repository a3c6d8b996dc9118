"""What a stored result is filed under: everything it depends on, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mugraph.ir.content import digest
from mugraph.ir.program import TensorProgram
from mugraph.targets import Target
from mugraph.version import __version__


@cache
def versions() -> Mapping[str, str]:
    """Versions of mugraph, torch and triton ("none" where there is none); imports neither of them."""
    found = {"mugraph": __version__}
    for package in ("torch", "triton"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


@cache
def code_digest() -> str:
    """64 hexadecimal digits of this package's own source: what another search, cost model or lowering would find must
    not be answered with what an earlier one found, between releases either. About 10 ms, once a process."""
    folder = Path(__file__).parents[1]
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        found.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def region_key(
    program: TensorProgram,
    target: Target,
    *,
    device: str = "",
    driver: str = "",
    space: str = "",
    with_versions: Mapping[str, str] | None = None,
) -> str:
    """64 hexadecimal digits for the result of optimising `program`.

    program: in canonical form (ir.transforms.renaming), so that programs that differ only in names have the same key
    device:  the GPU's name; "" where nothing was measured
    driver:  the driver's version; "" where nothing was measured
    space:   the search's limits, as text
    with_versions: of mugraph, torch, triton, and of the code; those installed when not given
    """
    made_with = dict(with_versions or {**versions(), "code": code_digest()})
    return digest("region", program, target, device, driver, space, made_with)
