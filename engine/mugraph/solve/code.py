"""The code as it runs, for the device: what kernels are compared with, and timed beside."""

from __future__ import annotations

from mugraph.codegen.plain import FUNCTION, region_source
from mugraph.ir.region import Region
from mugraph.ops.tf32 import settings_of
from mugraph.tune.messages import Subject


def code_of(region: Region) -> Subject:
    """Raises Rejected where a call of it cannot be spelled."""
    return Subject("eager", region_source(region), FUNCTION, tf32=settings_of(region.calls))
