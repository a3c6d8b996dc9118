"""What is known of a document at one version: its regions, and what was found for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from mugraph.events import RegionResult
from mugraph.ir.calls import Call
from mugraph.ir.content import digest
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.region import Position, Range, Region, Trace
from mugraph.plans.plan import RegionPlan
from mugraph.protocol.settings import EngineSettings
from mugraph.recording.ways import Way
from mugraph.tune.device import Device

_NOWHERE = Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True)
class Text:
    """A document's text at a version. state: digest of it and of all else that tracing it depends on."""

    uri: str
    version: int
    text: str
    state: str


@dataclass
class Known:
    """
    heads:    function -> its `def`
    applied:  positions of regions in code that a kernel replaces already
    keys:     of the regions, as the protocol has them
    contents: of the regions, everything their results depend on
    ways:     by region, where it is not of the way that took longest
    results:  key -> what was found
    left:     key -> contents and result of a region that the text before had, and this one has not
    """

    text: Text
    settings: EngineSettings
    device: Device
    trace: Trace
    ways: dict[int, Way]
    heads: dict[str, Range]
    applied: frozenset[int]
    seconds: float
    keys: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    results: dict[str, RegionResult] = field(default_factory=dict[str, RegionResult])
    left: dict[str, tuple[str, RegionResult]] = field(default_factory=dict[str, tuple[str, RegionResult]])

    def __post_init__(self) -> None:
        self.keys = region_keys(self.trace.regions)
        self.contents = tuple(region_content(region, self.settings) for region in self.trace.regions)

    def inherit(self, earlier: Known) -> None:
        """Takes over the results of code that is as it was, wherever it stands now. The others are kept once more: what
        is traced for the other ways of calling a function comes after the first."""
        content = dict(zip(earlier.keys, earlier.contents, strict=True))
        old = earlier.left | {key: (content[key], result) for key, result in earlier.results.items() if key in content}
        for number, key in enumerate(self.keys):
            was, result = old.pop(key, ("", None))
            if result is not None and was == self.contents[number]:
                self.results[key] = moved(result, self.trace.regions[number])
        self.left = {key: one for key, one in old.items() if key in content}

    def number(self, key: str) -> int | None:
        return self.keys.index(key) if key in self.keys else None

    def searchable(self, keys: Sequence[str] | None, again: bool) -> list[int]:
        """Positions of the regions that are to be searched."""
        return [
            number
            for number, region in enumerate(self.trace.regions)
            if region.status is None
            and number not in self.applied
            and (keys is None or self.keys[number] in keys)
            and (again or self.keys[number] not in self.results)
        ]

    def taken(self, but: Sequence[int]) -> tuple[str, ...]:
        """Names of the plans and kernels of all results that stay."""
        going = {self.keys[number] for number in but}
        names: list[str] = []
        for key, result in self.results.items():
            if key not in going and result.plan is not None:
                names.append(result.plan.name)
                names += [kernel.name for kernel in result.plan.mugraph.kernels if isinstance(kernel, GraphKernel)]
        return tuple(names)

    def at(self, version: int) -> None:
        """The same text, at another version."""
        self.text = replace(self.text, version=version)


def region_keys(regions: Sequence[Region]) -> tuple[str, ...]:
    """By function and text, and by number where these are the same."""
    counts: dict[tuple[str, str], int] = {}
    keys: list[str] = []
    for region in regions:
        name = (region.function, region.text.strip())
        counts[name] = counts.get(name, 0) + 1
        keys.append(digest("key", *name, counts[name], length=16))
    return tuple(keys)


def region_content(region: Region, settings: EngineSettings) -> str:
    """All that a result depends on but where the region stands."""
    dynamic = region.dynamic and replace(region.dynamic, calls=_placeless(region.dynamic.calls))
    placeless = replace(region, range=_NOWHERE, calls=_placeless(region.calls), dynamic=dynamic)
    return sha256(f"{placeless!r}{settings!r}".encode()).hexdigest()


def _placeless(calls: Sequence[Call]) -> tuple[Call, ...]:
    return tuple(replace(call, range=_NOWHERE) for call in calls)


def moved(result: RegionResult, region: Region) -> RegionResult:
    """The result for the same code at another place."""
    plan: RegionPlan | None = replace(result.plan, region=region) if result.plan is not None else None
    return replace(result, region=region, plan=plan)
