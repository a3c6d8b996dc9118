"""Where and how what is reported was measured."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class OnDevice(msgspec.Struct, kw_only=True):
    """device: its name. Methods: how times on the device were taken, and times of calls."""

    device: str
    versions: Mapping[str, str]
    device_method: str
    called_method: str
