"""Which calls keep float32's digits though PyTorch's settings let them round to TF32: the device is asked.

A program whose convolutions are allowed TF32 is as exact as the library makes it. Kernels that take TF32 beside a
convolution that does not are wrong by hundreds of times the program's own rounding, and would be refused after all of
them were searched, tested and measured.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from mugraph.codegen.plain import FUNCTION, call_source
from mugraph.ir.calls import Call, are_known, operands
from mugraph.ir.dtypes import DRAWN
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Region
from mugraph.memory.timings import timing_key
from mugraph.ops.tf32 import settings_of
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec, Subject

_log = logging.getLogger("mugraph.solve")
_WHAT = "digits"


def as_on_the_device(region: Region, tools: Tools, device: Device, store: Store | None) -> Region:
    """The region with its calls marked that were seen to keep all digits. As it was where nothing is measured."""
    if tools.measurer is None or region.dynamic is not None or not any(call.tf32 for call in region.calls):
        return region
    calls = tuple(replace(call, exact=_keeps(call, region, tools, device, store)) for call in region.calls)
    return replace(region, calls=calls)


def _keeps(call: Call, region: Region, tools: Tools, device: Device, store: Store | None) -> bool:
    if not call.tf32 or not are_known([call], region.values) or tools.measurer is None or tools.file_time.is_over:
        return False
    read = [region.values[value] for value in operands(call)]
    if any(info.dtype not in DRAWN for info in read):
        return False
    try:
        own, text = call_source(call)
    except Rejected as error:
        _log.info("it is not asked how a call rounds: %s", error)
        return False
    subject = Subject(call.target, text, FUNCTION, tf32=settings_of([own]))
    specs = tuple(InputSpec(info.shape, info.strides, info.dtype, skew=info.skew) for info in read)
    key = timing_key(subject, specs, device, (_WHAT,))
    if key not in tools.digits:
        known = store.get(key) if store is not None else None
        if known is not None and isinstance(known.get(_WHAT), bool):
            tools.digits[key] = known[_WHAT] is True
        else:
            found = tools.measurer.keeps_digits(subject, specs)
            tools.digits[key] = found is True
            if store is not None and found is not None:
                store.put(key, {_WHAT: found})
    return tools.digits[key]
