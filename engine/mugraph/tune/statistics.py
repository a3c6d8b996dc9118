"""What a set of timings says: the median, how sure it is, and whether one median is below another.

Medians and median absolute deviations, because a GPU's timings have a long tail to one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

# 1.4826 turns a median absolute deviation into a normal distribution's standard deviation; the median of n such
# samples has sqrt(pi / 2) / sqrt(n) of it.
_DEVIATION = 1.4826
_OF_MEDIAN = 1.2533
# Two medians of one run on one device repeat to about this part of each other however many samples are taken: clocks
# and the placement of buffers drift.
DRIFT = 0.02
CALLED_DRIFT = 0.05
"""The same of calls timed from the host, whose threads and clocks are shared with whatever else runs there."""


@dataclass(frozen=True, slots=True)
class Summary:
    """median_us with its standard error, both in microseconds; samples: how many replays."""

    median_us: float
    error_us: float
    samples: int


def summarise(samples: Sequence[float]) -> Summary:
    """Median and standard error of the median. Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples to summarise")
    middle = median(samples)
    spread = median([abs(sample - middle) for sample in samples]) * _DEVIATION
    return Summary(middle, _OF_MEDIAN * spread / sqrt(len(samples)), len(samples))


def noise_us(first: Summary, second: Summary, least: float = DRIFT) -> float:
    """The difference of two medians that says nothing: three standard errors, and no less than the drift."""
    error = sqrt(first.error_us**2 + second.error_us**2)
    return max(3 * error, least * max(first.median_us, second.median_us))


def gain(baseline: Summary, optimized: Summary, least: float = DRIFT) -> float:
    """baseline / optimized, below 1 where it is slower; exactly 1.0 where the difference is within the noise.

    least: part of a time that its repetitions differ by
    """
    if abs(baseline.median_us - optimized.median_us) <= noise_us(baseline, optimized, least):
        return 1.0
    return baseline.median_us / optimized.median_us


def speedup(baseline: Summary, optimized: Summary) -> float:
    """baseline / optimized, or exactly 1.0 when the improvement is within the noise (or there is none)."""
    if baseline.median_us - optimized.median_us <= noise_us(baseline, optimized):
        return 1.0
    return baseline.median_us / optimized.median_us
