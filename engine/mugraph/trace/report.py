"""What can be said of a file without running it."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.region import Region, Trace
from mugraph.trace.run.entries import Definitions, Missing


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


def without_running(path: str, definitions: Definitions, qualname: str | None) -> Trace:
    """The trace of a file in which nothing has shapes."""
    regions = [needs_shapes(lack) for lack in definitions.missing if selected(lack.function, qualname)]
    said = notices(definitions, regions, qualname)
    return Trace(path, tuple(sorted(regions, key=lambda region: region.range.start)), notices=said)
