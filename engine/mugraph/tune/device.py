"""Which GPU is here, if any, and the device model that fits it.

Nothing here imports torch unless a driver is present, so that the command line starts fast on machines without a GPU.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from mugraph.protocol.targets import DEVICES, NAMES, is_target
from mugraph.targets import TARGETS, Target, architecture

_log = logging.getLogger("mugraph.tune")

_DRIVER = Path("/proc/driver/nvidia/version")
_CONTROL = Path("/dev/nvidiactl")


class UnknownTarget(Exception):
    """--target names no device model; the message is one sentence that says what may be named."""


@dataclass(frozen=True, slots=True)
class Device:
    """What kernels will be made for and, when kind is "gpu", measured on.

    name:       as the driver says it ("NVIDIA H200"); "no GPU" when there is none
    target:     the model schedules are filtered and estimated by
    driver:     version of the NVIDIA driver
    capability: compute capability * 10; 0 without a GPU
    note:       why a GPU that seems to be here cannot be used, in one sentence
    """

    name: str
    kind: Literal["gpu", "none"]
    target: Target
    capability: int = 0
    driver: str | None = None
    note: str | None = None


def driver_present() -> bool:
    """An NVIDIA driver is loaded (says nothing of whether this process may use a device)."""
    return _DRIVER.exists() or _CONTROL.exists()


def driver_version() -> str | None:
    try:
        text = _DRIVER.read_text()
    except OSError as error:  # on a system without /proc
        _log.debug("the driver's version is not known: %s", error)
        return None
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def match(name: str, capability: int) -> Target:
    """The device model for a GPU of this name and compute capability * 10: by name where there is one, else the newest
    model of an architecture that is not newer (its figures are then a stand-in)."""
    named = [TARGETS[device] for device in DEVICES if device in name.lower()]
    return max(named, key=lambda target: len(target.name), default=None) or architecture(capability)


def detect() -> Device:
    """The current GPU (the first that CUDA_VISIBLE_DEVICES leaves), else a Device of kind "none"."""
    nothing = Device("no GPU", "none", TARGETS["cpu"])
    if not driver_present():
        return nothing
    driver = driver_version()
    try:
        import torch
    except ImportError as error:
        return replace(nothing, driver=driver, note=f"PyTorch cannot be imported: {error}")
    if torch.version.cuda is None:
        note = f"this PyTorch ({torch.__version__}) was built without CUDA; install a CUDA build to measure"
        return replace(nothing, driver=driver, note=note)
    if not torch.cuda.is_available():
        return replace(nothing, driver=driver, note="a driver is loaded, but PyTorch sees no usable CUDA device")
    properties: Any = cast(Any, torch.cuda).get_device_properties(torch.cuda.current_device())
    name = str(properties.name)
    capability = int(properties.major) * 10 + int(properties.minor)
    target = match(name, capability)
    # Figures the driver gives are better than those of a data sheet; a stand-in model needs them.
    target = replace(
        target,
        processors=int(properties.multi_processor_count),
        shared=int(getattr(properties, "shared_memory_per_block_optin", target.shared)),
        l2=int(getattr(properties, "L2_cache_size", target.l2)),
    )
    return Device(name, "gpu", target, capability, driver)


def alike() -> tuple[str, ...]:
    """The GPUs that this process may use and that have the current one's name, which comes first: each as
    CUDA_VISIBLE_DEVICES names it. None without one."""
    if not driver_present():
        return ()
    import torch

    if not torch.cuda.is_available():
        return ()
    count, current = torch.cuda.device_count(), torch.cuda.current_device()
    said = os.environ.get("CUDA_VISIBLE_DEVICES")
    words = [str(number) for number in range(count)] if said is None else [word.strip() for word in said.split(",")]
    names = [torch.cuda.get_device_name(number) for number in range(count)]
    of_name = [number for number, name in enumerate(names) if name == names[current]]
    return tuple(words[number] for number in sorted(of_name, key=lambda number: number != current))


def device_memory() -> int | None:
    """Bytes of the current GPU's memory; None without one."""
    if not driver_present():
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    properties: Any = cast(Any, torch.cuda).get_device_properties(torch.cuda.current_device())
    return int(properties.total_memory)


def resolve(request: str, device: Device) -> Target:
    """The model `--target` asks for: "auto" is the device's own. Raises UnknownTarget."""
    text = request.lower()
    if not is_target(text):
        raise UnknownTarget(f"unknown target {request!r}; choose {NAMES}")
    if text == "auto":
        return device.target
    return TARGETS.get(text) or architecture(int(text.removeprefix("sm_")))
