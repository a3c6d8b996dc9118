"""What the answers of the samples say together, as tables and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from mugraph.protocol.gain_words import CODE
from mugraph.reports.text import PHASES
from mugraph.research.answer import OURS, Answer
from mugraph.research.fitting import ESTIMATED, agreement
from mugraph.research.scatter import scatter
from mugraph.tune.against import PEERS
from mugraph.tune.statistics import CALLED_DRIFT, DRIFT

MEASURED = (*PEERS, OURS)
_SHORT = {"torch.compile": "compile", "max-autotune": "max-at."}
Pairs = list[tuple[float, float]]


def tables(found: Sequence[Answer]) -> str:
    """Seconds, times, and what they come to, of the regions that were searched."""
    searched = [one for one in found if one.searched]
    if not searched:
        return "no region was searched"
    return "\n\n".join([_seconds(found, searched), _times(searched), "\n".join(_together(searched))])


def _seconds(found: Sequence[Answer], searched: Sequence[Answer]) -> str:
    head = ["region", "start", "answer", *PHASES]
    rows = [
        [
            one.name,
            *(f"{value:.1f}" for value in (one.start_s, one.seconds, *(one.spent_s.get(p, 0.0) for p in PHASES))),
        ]
        for one in searched
    ]
    alone = median(one.seconds for one in searched)
    files = {one.file for one in searched}
    shares: list[float] = []
    for file in files:
        whole = sum(one.start_s + one.seconds for one in found if one.file == file)
        count = sum(one.file == file for one in searched)
        shares += [whole / count] * count
    said = (
        f"seconds to an answer, median of {len(searched)} regions: {median(shares):.1f} with its share of the start of"
        f" its file's run, {alone:.1f} without; slowest {max(one.seconds for one in searched):.1f}"
    )
    return f"{aligned([head, *rows])}\n{said}"


def _times(searched: Sequence[Answer]) -> str:
    """Left, on the device; right, as called. Speedups over the code as it runs and over the best."""
    short = [_SHORT.get(name, name) for name in MEASURED]
    head = ["region (us)", *short, "x code", "x best", "estim.", "| called", *short[1:], "x code", "x best", "status"]
    rows = [
        [
            one.name + (f" at {one.size}" if one.size is not None else ""),
            *(_us(one.device_us, name) for name in MEASURED),
            *(_gain(value) for value in (one.speedup, one.best)),
            _gain(_ratio(one.estimated_us, CODE)),
            *(_us(one.called_us, name) for name in MEASURED),
            *(_gain(value) for value in (one.called_speedup, one.called_best)),
            one.status + ("" if one.guarded or not one.called_us else " (no guards)"),
        ]
        for one in searched
    ]
    return aligned([head, *rows])


def _together(searched: Sequence[Answer]) -> list[str]:
    offered = [one for one in searched if one.status == "improved" and one.device_us]
    slower = [
        f"{one.name} ({clock}, {_ratio(times, name) or 0:.2f} of {name})"
        for one in offered
        for clock, times, drift in (
            ("on the device", one.device_us, DRIFT),
            ("as called", one.called_us, CALLED_DRIFT),
        )
        for name in PEERS
        if (ratio := _ratio(times, name)) is not None and ratio < 1 - drift
    ]
    lines = [f"offered: {len(offered)} of {len(searched)}; slower than something: {', '.join(slower) or 'none'}"]
    for words, pairs in (
        ("speedup over the code, estimated and measured", speedups(searched, [CODE])),
        ("speedup over the best of what is estimated", speedups(searched, ESTIMATED)),
        ("times of the generated code", _pairs(searched, OURS)),
        ("times of the code as it runs", _pairs(searched, CODE)),
        ("times of torch.compile", _pairs(searched, "torch.compile")),
    ):
        if pairs:
            lines.append(f"{words:<46}{agreement(pairs)}")
    return lines


def speedups(found: Sequence[Answer], names: Sequence[str]) -> Pairs:
    """Estimated and measured, over the best of these."""
    pairs: Pairs = []
    for one in found:
        both = [_over(times, names) for times in (one.estimated_us, one.device_us)]
        if both[0] is not None and both[1] is not None:
            pairs.append((both[0], both[1]))
    return pairs


def plot(found: Sequence[Answer]) -> str:
    """Speedups over the code as it runs."""
    named = [(one.name, *pair) for one in found for pair in speedups([one], [CODE])]
    device = next((one.device for one in found if one.device_us), "no GPU")
    return scatter(named, f"Speedup over the code as it runs, {device}")


def _over(times: Mapping[str, float], names: Sequence[str]) -> float | None:
    known = [times[name] for name in names if name in times]
    return min(known) / times[OURS] if known and times.get(OURS) else None


def _pairs(found: Sequence[Answer], name: str) -> Pairs:
    return [
        (one.estimated_us[name], one.device_us[name])
        for one in found
        if name in one.estimated_us and name in one.device_us
    ]


def _ratio(times: Mapping[str, float], name: str) -> float | None:
    return _over(times, [name])


def _us(times: Mapping[str, float], name: str) -> str:
    return f"{times[name]:.1f}" if name in times else "-"


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )
