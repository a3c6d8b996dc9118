"""The sentences of all views. A number says where it comes from; what is not verified now is not called verified."""

from __future__ import annotations

from mugraph.protocol.values import Region, Timing

from mugraph_server.regions import FileState, Mark


def factor(region: Region) -> str:
    """ "1.8×"; "" where there is none to speak of."""
    speedup = region.timing.speedup if region.timing is not None else None
    return f"{speedup:.2g}×" if speedup is not None and speedup < 10 else f"{speedup:.0f}×" if speedup else ""


def headline(region: Region) -> str:
    """Of an improved region: "1.8× faster on NVIDIA H200, verified; measured 9.1 µs against 16.4"."""
    timing = region.timing
    gain = factor(region)
    if timing is None or not gain:
        return f"a kernel was found{_verified(region)}"
    if timing.source == "measured":
        return f"{gain} faster on {timing.device}{_verified(region)}; measured {_times(timing)}{_sizes(region)}"
    where = f"estimated for {timing.device}, not measured: {_times(timing)}"
    return f"about {gain} faster{_verified(region)}; {where}{_sizes(region)}"


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
    before = f" (before: {factor(mark.result)})" if mark.result is not None and factor(mark.result) else ""
    if state == "improved":
        timing = mark.region.timing
        how = "" if timing is None else " measured" if timing.source == "measured" else " estimated"
        verified = ", verified" if mark.region.verified else ""
        return f"{factor(mark.region) or 'kernel found'}{how}{verified}: replace with the Triton kernel"
    if state == "searching":
        count = f" {mark.pace.number + 1}/{mark.pace.of}" if mark.pace.of > 1 else ""
        return f"searching…{count}{before}"
    return {
        "queued": f"searching…{before}" if file.searching else "not searched yet: search",
        "stale": f"changed; save to search again{before}" if not file.broken else "waiting for code that parses",
        "no-gain": "PyTorch's own kernels are as good here",
        "needs-shapes": "needs shapes: insert a comment",
        "unsupported": "cannot be searched",
        "failed": "the search failed",
        "applied": "runs as a generated Triton kernel",
    }[state]


def _before(region: Region | None) -> str:
    if region is None:
        return ""
    gain = factor(region)
    return f"{gain} faster" if region.status == "improved" and gain else "no gain"


def _verified(region: Region) -> str:
    return ", verified" if region.verified else ""


def _sizes(region: Region) -> str:
    """One kernel may be for all sizes of a range; the times are at one."""
    return f", at the largest of {region.sizes}" if region.sizes else ""


def _times(timing: Timing) -> str:
    if timing.optimized_us is None or timing.baseline_us is None:
        return "no times"
    return f"{timing.optimized_us:.1f} µs against {timing.baseline_us:.1f}"
