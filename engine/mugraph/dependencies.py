"""The packages that mugraph needs, and one sentence for one that is missing.

Imports only the standard library: it is asked when anything else may be missing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires

PACKAGES = {
    "torch": "torch",
    "triton": "triton",
    "numpy": "numpy",
    "pygls": "pygls",
    "z3": "z3-solver",
    "watchdog": "watchdog",
    "msgspec": "msgspec",
    "typer": "typer",
    "rich": "rich",
    "sqlalchemy": "SQLAlchemy",
    "igraph": "igraph",
    "psutil": "psutil",
    "packaging": "packaging",
}
"""What is imported -> the distribution that brings it."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?(?P<range>[^;]*)(?:;(?P<marker>.*))?")
_SYSTEM = re.compile(r"""sys_platform\s*==\s*["'](?P<system>\w+)["']""")


def required() -> Mapping[str, str] | None:
    """Distribution -> the versions that this mugraph needs ("<3,>=2.1"), of those needed on this system; None where
    mugraph's own metadata is missing, which it is where mugraph was not installed but put on the path."""
    try:
        stated = requires("mugraph") or []
    except PackageNotFoundError:
        return None
    found: dict[str, str] = {}
    for one in map(_REQUIREMENT.fullmatch, stated):
        marker = one and (one["marker"] or "")
        if one is None or marker is None or "extra" in marker:
            continue
        system = _SYSTEM.search(marker)
        if system is None or system["system"] == sys.platform:
            found[one["name"]] = one["range"].strip(" ()")
    return found


def install(distribution: str) -> str:
    """The command, of the Python in which this runs, that installs it in a version that fits."""
    versions = (required() or {}).get(distribution, "")
    requirement = f"'{distribution}{versions}'" if versions else distribution
    return f"pip install {requirement}"


def sentence(module: str) -> str | None:
    """What is said where the import of a module has failed; None for a module of mugraph's own."""
    top = module.partition(".")[0]
    if not top or top in ("mugraph", "mugraph_server"):
        return None
    distribution = PACKAGES.get(top)
    if distribution is None:
        return f"the Python module {top} is missing, which a package needs that mugraph uses; pip check says which"
    if top == "triton" and sys.platform != "linux":
        return f"triton is not installed; there is none for this system ({sys.platform}), and kernels are made with it"
    return f"{distribution} is not installed in {sys.executable}, and mugraph needs it: {install(distribution)}"


def missing(*modules: str) -> str | None:
    """What is said of the first of these that is not installed; None if all are. Imports none of them."""
    return next((sentence(module) for module in modules if not installed(module)), None)


def installed(module: str) -> bool:
    """Whether the top-level module could be imported."""
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: it has been put into sys.modules by hand, without a spec
        return module in sys.modules
