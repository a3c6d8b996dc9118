"""The sentences of all views. A number says where it comes from; what is not verified now is not called verified."""

from __future__ import annotations

from mugraph.protocol.values import Region, Timing

from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState


def factor(region: Region) -> str:
    """ "1.8×", at several sizes "1.4× to 2.3×"; "" where there is none to speak of."""
    if region.timing is None:
        return ""
    gains = [row.speedup for row in region.timing.sizes if row.speedup is not None and row.speedup > 1]
    if not gains:
        return _times_as(region.timing.speedup)
    low, high = _times_as(min(gains)), _times_as(max(gains))
    return low if low == high else f"{low} to {high}"


def gain_of(region: Region) -> str:
    """The factor and for which sizes: "1.4× to 2.3× for b up to 16"."""
    sizes = region.timing.faster_for if region.timing is not None else ""
    return f"{factor(region)} for {sizes}" if sizes and factor(region) else factor(region)


def _times_as(speedup: float | None) -> str:
    return f"{speedup:.2g}×" if speedup is not None and speedup < 10 else f"{speedup:.0f}×" if speedup else ""


def headline(region: Region) -> str:
    """Of an improved region: "1.8× faster on NVIDIA H200, verified; measured 9.1 µs against 16.4"."""
    timing = region.timing
    if timing is None or not factor(region):
        return f"a kernel was found{_verified(region)}"
    gain = f"{factor(region)} faster" + (f" for {timing.faster_for}" if timing.faster_for else "")
    if timing.source == "measured":
        return f"{gain} on {timing.device}{_verified(region)}; measured {_times(timing)}{_at(timing)}"
    where = f"estimated for {timing.device}, not measured: {_times(timing)}"
    return f"about {gain}{_verified(region)}; {where}{_at(timing)}"


def size_table(region: Region) -> str:
    """Of a size in a range, the times at each size that was looked at, in Markdown; "" for another region."""
    timing = region.timing
    if timing is None or not timing.sizes:
        return ""
    name = timing.at.partition(" = ")[0]
    peers = list(dict.fromkeys(peer for row in timing.sizes for peer in row.peers_us)) or ["PyTorch"]
    lines = [f"| {name} | {' | '.join(peers)} | kernel | runs |", "| --: |" + " --: |" * (len(peers) + 1) + " --- |"]
    for row in timing.sizes:
        before = (
            [_us(row.peers_us.get(peer)) for peer in peers] if row.peers_us else [_us(row.baseline_us)] * len(peers)
        )
        gains = row.speedup is not None and row.speedup > 1
        runs = f"the kernel, {_times_as(row.speedup)}" if gains else "your own code"
        lines.append(f"| {row.size} | {' | '.join(before)} | {_us(row.optimized_us)} | {runs} |")
    how = f"measured on {timing.device}" if timing.source == "measured" else f"estimated for {timing.device}"
    return "\n".join([*lines, "", f"µs, {how}"])


def _us(us: float | None) -> str:
    return "" if us is None else f"{us:.1f}"


def sentence(file: FileState, mark: Mark) -> str:
    """One sentence for any state."""
    state = file.state(mark)
    if state == "improved":
        return headline(mark.region)
    if state == "stale":
        if file.broken:
            return f"the file cannot be parsed ({file.broken})"
        why = "the code has changed since" if file.stale or file.unjudged or mark.touched else mark.region.message
        return f"{why}; before: {_before(mark.result)}" if mark.result is not None else why
    if state == "queued" and not file.searching:
        return "not searched yet"
    if state in ("queued", "searching"):
        return pace(mark)
    return mark.region.message


def kept(mark: Mark) -> str:
    """While it is searched again: without counts, which would change ten times a second."""
    return f"being searched again; before: {_before(mark.result)}"


def pace(mark: Mark) -> str:
    """ "searching 2/5, first verified kernel after 1.3 s"."""
    if mark.region.status == "queued":
        return "waiting to be searched" + (f"; before: {_before(mark.previous)}" if mark.previous else "")
    place = mark.pace
    count = f" {place.number + 1}/{place.of}" if place.of > 1 else ""
    parts = [f"searching{count}"]
    if place.topologies:
        parts.append(f"{place.topologies} topologies in {place.seconds:.0f} s")
    if place.first_hit_s is not None:
        parts.append(f"first verified after {place.first_hit_s:.1f} s")
    text = ", ".join(parts)
    return text + (f"; before: {_before(mark.previous)}" if mark.previous else "")


def lens(file: FileState, mark: Mark) -> str:
    """Short, and never empty while a region is there, so that lines stay where they are."""
    state = file.state(mark)
    before = f" (before: {gain_of(mark.result)})" if mark.result is not None and factor(mark.result) else ""
    took = f" ({share(mark.region)})" if share(mark.region) else ""
    if state == "improved":
        timing = mark.region.timing
        how = "" if timing is None else " measured" if timing.source == "measured" else " estimated"
        verified = ", verified" if mark.region.verified else ""
        return f"{gain_of(mark.region) or 'kernel found'}{how}{verified}: replace with the Triton kernel{took}"
    if state == "searching":
        count = f" {mark.pace.number + 1}/{mark.pace.of}" if mark.pace.of > 1 else ""
        return f"searching…{count}{before}"
    said = {
        "queued": f"searching…{before}" if file.searching else "not searched yet: search",
        "stale": f"changed; save to search again{before}" if not file.broken else "waiting for code that parses",
        "no-gain": "PyTorch's own kernels are as good here",
        "needs-shapes": "needs shapes: insert a comment",
        "unsupported": "cannot be searched",
        "failed": "the search failed",
        "applied": "runs as a generated Triton kernel",
    }[state]
    return f"{said}{took}" if state in ("no-gain", "needs-shapes", "unsupported", "failed", "applied") else said


def share(region: Region) -> str:
    """Of a recorded run: "31 % of the run; 1.6× here is 1.13× overall"; "" where nothing was recorded."""
    took = region.share
    if took is None:
        return ""
    part = f"{100 * took.part:.0f} %" if took.part >= 0.01 else "less than 1 %"
    if took.overall is None or region.status != "improved" or region.timing is None:
        return f"{part} of the run"
    gain = _times_as(region.timing.speedup)
    return f"{part} of the run; {gain} here is {'' if took.whole else 'at most '}{took.overall:.2f}× overall"


def _before(region: Region | None) -> str:
    if region is None:
        return ""
    if region.status != "improved" or region.timing is None or not factor(region):
        return "no gain"
    sizes = region.timing.faster_for
    return f"{factor(region)} faster" + (f" for {sizes}" if sizes else "")


def _verified(region: Region) -> str:
    return ", verified" if region.verified else ""


def _at(timing: Timing) -> str:
    """One kernel may be for all sizes of a range; the times are at one."""
    return f" at {timing.at}" if timing.at else ""


def _times(timing: Timing) -> str:
    if timing.optimized_us is None or timing.baseline_us is None:
        return "no times"
    return f"{timing.optimized_us:.1f} µs against {timing.baseline_us:.1f}"
