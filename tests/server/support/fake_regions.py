"""The regions that the fake engine finds: one at every `return`; and those that it has searched before."""

from __future__ import annotations

import hashlib
import re

from fake_control import CONTROL, note
from mugraph.protocol import values as v

RETURN = re.compile(r"^(\s*return )(.+?)\s*$")
DEFINITION = re.compile(r"^(\s*)def (\w+)")
_OURS = re.compile(r"^\s*# mugraph:")

MEASURED = v.Timing(
    "measured", "Fake H200", "CUDA events", 16.4, 9.1, 1.8, {"eager": 16.4, "torch.compile": 10.0},
    best_peer="torch.compile", best_speedup=1.1,
    as_called=v.Called(90.0, 52.0, 1.73, {"eager": 90.0}, "eager", 1.73),
)  # fmt: skip
RANGED = v.Timing(
    "measured", "Fake H200", "CUDA events", 16.4, 9.1, 1.8, {"eager": 20.0, "torch.compile": 16.4}, "b = 16",
    "b up to 16", [
        v.SizeTiming(1, 15.0, 5.0, 3.0, {"eager": 15.0, "torch.compile": 15.0}, gains=True),
        v.SizeTiming(16, 16.4, 9.1, 1.8, {"eager": 16.4, "torch.compile": 20.0}, gains=True),
        v.SizeTiming(64, 20.0, 22.0, 0.91, {"eager": 20.0, "torch.compile": 24.0}, gains=False),
    ],
)  # fmt: skip
"""Of a region whose line says `ranged`."""


def regions_of(text: str, uri: str) -> list[v.Region]:
    """One for each `return EXPRESSION`; shapes are known where a `# mugraph:` comment stands above the function."""
    found: list[v.Region] = []
    head, function, shaped = v.Range(v.Position(0, 0), v.Position(0, 0)), "", False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if match := DEFINITION.match(line):
            start = len(match[1])
            head = v.Range(v.Position(number, start), v.Position(number, units(match[0])))
            function, shaped = match[2], number > 0 and _OURS.match(lines[number - 1]) is not None
        elif (match := RETURN.match(line)) and function:
            place = v.Range(v.Position(number, units(match[1])), v.Position(number, units(match[1] + match[2])))
            key = hashlib.sha256(f"{function} {match[2]}".encode()).hexdigest()[:16]
            if not shaped:
                found.append(v.Region(key, function, head, head, "needs-shapes", f"{function} needs shapes"))
                continue
            if "_mugraph." in line:
                found.append(v.Region(key, function, place, head, "applied", f"{function} runs as a kernel"))
                continue
            if "slow" in line:
                found.append(v.Region(key, function, place, head, "no-gain", f"{function}: PyTorch's own is as good"))
                continue
            timing = RANGED if "ranged" in line else MEASURED
            found.append(
                v.Region(
                    key, function, place, head, "improved", f"{function}: 1.8 times faster", [place], verified=True,
                    lax=True, applicable=True, evidence=["equal over two finite fields"], timing=timing,
                    kernels=["k"], block_ops=3, id=key[:10], candidates=[
                        v.Candidate("k", 0, 0.1, "grid n/64: 96 blocks; 4 warps, 3 stages", 3, 12.5),
                        v.Candidate("k", 1, 0.4, "grid n/128: 48 blocks; 4 warps, 3 stages", 3, 8.5, 9.1, chosen=True),
                    ],
                )
            )  # fmt: skip
    return found


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def waiting(region: v.Region, status: v.RegionStatus) -> v.Region:
    if region.status != "improved":
        return region
    return v.Region(region.key, region.function, region.range, region.name_range, status, status, region.statements)


def in_store(region: v.Region) -> bool:
    path = CONTROL.with_name(f"{CONTROL.name}.store")
    return path.exists() and region.key in path.read_text()


def keep(region: v.Region) -> None:
    note("store", region.key)
