"""What can be said of a file without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mugraph.ir.region import Region, Trace
from mugraph.trace.run.entries import Definitions, Missing

_MOST = 3
"""Regions of another file that are named."""


def selected(function: str, qualname: str | None) -> bool:
    """Whether a function is the one asked for, or belongs to the class asked for."""
    return qualname is None or function == qualname or function.startswith(f"{qualname}.")


def needs_shapes(lack: Missing) -> Region:
    return Region(
        function=lack.function,
        range=lack.range,
        unit="statements",
        text=lack.text,
        function_args=lack.args,
        status="needs-shapes",
        reason=lack.reason,
    )


def notices(definitions: Definitions, regions: Sequence[Region], qualname: str | None) -> tuple[str, ...]:
    """Comments that are not read where they stand, but those that are a region's reason."""
    reasons = {region.reason for region in regions}
    wanted = (one for one in definitions.misplaced if one.function is None or selected(one.function, qualname))
    return tuple(one.sentence for one in wanted if one.sentence not in reasons)


def in_other_files(trace: Trace) -> Iterator[str]:
    """ "the run of model.py finds 4 regions in layers.py (Block.forward, line 22; ...; 1 more), which are searched
    there: mugraph optimize layers.py --called-from model.py"."""
    for file, places in trace.elsewhere.items():
        count = len(places)
        listed = "; ".join(places[:_MOST]) + (f"; {count - _MOST} more" if count > _MOST else "")
        what, are = ("1 region", "is") if count == 1 else (f"{count} regions", "are")
        yield (
            f"the run of {Path(trace.path).name} finds {what} in {Path(file).name} ({listed}), which {are} searched "
            f"there: mugraph optimize {file} --called-from {trace.path}"
        )


def without_running(path: str, definitions: Definitions, qualname: str | None) -> Trace:
    """The trace of a file in which nothing has shapes."""
    regions = [needs_shapes(lack) for lack in definitions.missing if selected(lack.function, qualname)]
    said = notices(definitions, regions, qualname)
    return Trace(path, tuple(sorted(regions, key=lambda region: region.range.start)), notices=said)
