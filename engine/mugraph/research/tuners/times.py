"""What kernels take: measured once for all tuners, or estimated."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Protocol

from mugraph.research.tuners.prepared import Prepared
from mugraph.research.tuners.runs import Compared
from mugraph.search.schedules.parameters import Point
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.input_specs import input_specs
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.tuner import Variant
from mugraph.verification.float_test import FloatTester

SPREAD = 0.1
"""Standard deviation of the logarithm of measured over estimated, in the noise of estimates: about that of a cost model
that correlates with measurements at 0.9."""
AT_ONCE = 48
"""Kernels that are compiled together, before they are measured and kept."""


class OutOfTime(Exception):
    """What was known is kept; a later call goes on."""


class Times(Protocol):
    def of(self, prepared: Prepared, found: Compared, points: Sequence[Point]) -> Mapping[Point, float | None]:
        """Microseconds of each; None where it has none. Raises OutOfTime."""
        ...

    def wrong(self, prepared: Prepared, found: Compared, fastest: Mapping[str, Point]) -> list[str]:
        """Of the fastest of each run, by key, those that give wrong results on the device: they have no time any more.
        Raises OutOfTime."""
        ...


class Estimated:
    """The cost model's estimates, each times a factor that is drawn once for each kernel, by its schedule."""

    def of(self, prepared: Prepared, found: Compared, points: Sequence[Point]) -> Mapping[Point, float | None]:
        return {point: self._us(prepared, point) for point in points}

    def wrong(self, prepared: Prepared, found: Compared, fastest: Mapping[str, Point]) -> list[str]:
        return []

    @staticmethod
    def _us(prepared: Prepared, point: Point) -> float:
        drawn = random.Random(f"{prepared.operator.name} {prepared.key(point)}")
        return prepared.space.estimate_us(point) * exp(drawn.gauss(0.0, SPREAD))


@dataclass
class MeasuredTimes:
    """keep: writes what is known. until: no kernel is begun later (time.monotonic)"""

    measurer: Measurer
    pool: CompilePool
    tester: FloatTester
    keep: Callable[[], None]
    until: float

    def of(self, prepared: Prepared, found: Compared, points: Sequence[Point]) -> Mapping[Point, float | None]:
        keys = {point: prepared.key(point) for point in points}
        new = list({key: point for point, key in keys.items() if key not in found.times}.items())
        for begin in range(0, len(new), AT_ONCE):
            if time.monotonic() > self.until:
                raise OutOfTime
            self._measure(prepared, found, new[begin : begin + AT_ONCE])
            self.keep()
        return {point: found.times[key] for point, key in keys.items()}

    def wrong(self, prepared: Prepared, found: Compared, fastest: Mapping[str, Point]) -> list[str]:
        bad: list[str] = []
        for key, point in fastest.items():
            variant = prepared.variant(point)
            if key in found.tested or isinstance(variant, str):
                continue
            if time.monotonic() > self.until:
                raise OutOfTime
            tested = self.tester.test_kernel(variant.kernel, prepared.program)
            if tested.passed:
                found.tested.append(key)
            else:
                found.times[key], found.why[key] = None, tested.reason or "wrong on the device"
                bad.append(key)
            self.keep()
        return bad

    def _measure(self, prepared: Prepared, found: Compared, some: Sequence[tuple[str, Point]]) -> None:
        ready: list[tuple[str, Variant]] = []
        for key, point in some:
            variant = prepared.variant(point)
            if isinstance(variant, str):
                found.times[key], found.why[key] = None, variant
            else:
                ready.append((key, variant))
        program = prepared.program
        asked = [(one.subject, input_specs(program, [t.name for t in one.kernel.inputs])) for _, one in ready]
        reasons = self.pool.compile(asked)
        compiled = [number for number, why in enumerate(reasons) if why is None]
        results = self.measurer.measure_kernels([asked[number] for number in compiled], rounds=12)
        for number, why in enumerate(reasons):
            key = ready[number][0]
            result = Refused(f"it does not compile: {why}") if why is not None else next(results)
            if isinstance(result, Refused):
                found.times[key], found.why[key] = None, result.reason
            else:
                found.times[key] = round(result.median_us, 3)
