"""Measured times of regions kept between runs, by everything the time depends on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from mugraph.events import Timing
from mugraph.ir.content import digest
from mugraph.store.keys import versions
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec, Subject

_log = logging.getLogger("mugraph.memory")


def timing_key(
    subject: Subject,
    specs: tuple[InputSpec, ...],
    device: Device,
    peers: Sequence[str] = (),
    program: str = "",
) -> str:
    """subject: its text is that of the kernel module that was measured, kernels and reference. program: of the edited
    file, where that was called. peers: that it was compared with."""
    said, own = [str(spec) for spec in specs], [subject.source, subject.function, list(subject.tf32)]
    return digest("timing", own, said, device.name, device.driver, versions(), list(peers), program)


def remember_timing(timing: Timing, reason: str | None) -> Mapping[str, object]:
    return {"timing": msgspec.to_builtins(timing), "reason": reason}


def recall_timing(document: Mapping[str, object]) -> tuple[Timing, str | None] | None:
    """None where the document cannot be read."""
    try:
        return msgspec.convert(document["timing"], Timing), msgspec.convert(document["reason"], str | None)
    except (KeyError, msgspec.ValidationError) as error:
        _log.info("what is stored cannot be read: %s", error)
        return None
