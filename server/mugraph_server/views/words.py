"""The sentences of all views. A number says where it comes from; what is not verified now is not called verified."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.protocol.gain_words import gain_words, here_words, in_a_run
from mugraph.protocol.values import Called, Region, Timing

from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState


def gain_of(region: Region) -> str:
    """ "1.20× as it runs, 1.02× torch.compile", with a range "1.40× to 2.30× as it runs for b up to 16", of an estimate
    "about 1.4× by estimate"; "" where there is none to speak of."""
    timing = region.timing
    if timing is None:
        return ""
    rows = [row for row in timing.sizes if row.runs] or [timing]
    gain = gain_words(rows, measured=timing.source == "measured", compare_with=timing.compare_with, sign="×")
    return f"{gain} for {timing.faster_for}" if gain and timing.faster_for else gain


def gains_of(regions: Sequence[Region]) -> str:
    """Of regions of the same code: "1.20× as it runs; for other calls 1.05× as it runs"."""
    return "; for other calls ".join(filter(None, map(gain_of, regions)))


def headline(region: Region) -> str:
    """Of an improved region: "1.20× as it runs, 1.02× torch.compile, on NVIDIA H200, verified; measured 9.1 µs against
    11.0, as called 32.0 µs against 38.0"."""
    timing, gain = region.timing, gain_of(region)
    if timing is None or not gain:
        return f"a kernel was found{_verified(region)}"
    if timing.source == "measured":
        times = f"{_times(timing)}{_at(timing)}"
        called = f", as called {_times(timing.as_called)}{_guards(timing.as_called)}" if timing.as_called else ""
        return f"{gain}, on {timing.device}{_verified(region)}; measured {times}{called}"
    where = f"estimated for {timing.device}, not measured: {_times(timing)}"
    return f"{gain}{_verified(region)}; {where}{_at(timing)}"


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
        measured = timing.source == "measured"
        gain = gain_words([row], measured=measured, compare_with=timing.compare_with, sign="×")
        runs = f"the kernel, {gain}" if row.runs else "your own code"
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
    before = f" (before: {gain_of(mark.result)})" if mark.result is not None and gain_of(mark.result) else ""
    took = f" ({share(mark.region)})" if share(mark.region) else ""
    if state == "improved":
        timing = mark.region.timing
        how = ", measured" if timing is not None and timing.source == "measured" else ""
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


def share(region: Region, *, fully: bool = False) -> str:
    """Of a recorded run: "31 % of the run; 1.60× here is 1.13× overall; made for 12 of 36 recorded calls"; "" where
    nothing was recorded."""
    took = region.share
    if took is None:
        return ""
    said = [f"{100 * took.part:.0f} % of the run" if took.part >= 0.01 else "less than 1 % of the run"]
    if took.overall is not None and region.status == "improved" and region.timing is not None:
        gain = in_a_run(region.timing) or 1.0
        here = here_words(gain, region.timing.source == "measured", "×")
        said.append(f"{here} is {'' if took.whole else 'at most '}{took.overall:.2f}× overall")
    if took.fitting:
        said.append(took.fitting if fully else took.fitting.partition(";")[0])
    return "; ".join(said)


def _before(region: Region | None) -> str:
    if region is None:
        return ""
    return gain_of(region) if region.status == "improved" and gain_of(region) else "no gain"


def _verified(region: Region) -> str:
    return ", verified" if region.verified else ""


def _at(timing: Timing) -> str:
    """One kernel may be for all sizes of a range; the times are at one."""
    return f" at {timing.at}" if timing.at else ""


def _guards(called: Called) -> str:
    """What the figure lacks, where the user's own objects could not be built for it."""
    return " without the guards of its objects" if "without the guards" in called.method else ""


def _times(timing: Timing | Called) -> str:
    if timing.optimized_us is None or timing.baseline_us is None:
        return "no times"
    return f"{timing.optimized_us:.1f} µs against {timing.baseline_us:.1f}"
