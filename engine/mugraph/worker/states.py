"""What a person is told of a region: the protocol's value for what tracing and searching have found."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from mugraph.edit.names import mugraph_id
from mugraph.events import Considered, Figures, RegionResult, SearchReport
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.numbers import said
from mugraph.ir.region import Range, Region
from mugraph.ir.shares import Share
from mugraph.protocol import values
from mugraph.protocol.gain_words import in_a_run
from mugraph.reports.document import finite, verdicts_of
from mugraph.reports.evidence import evidence
from mugraph.reports.text import beside_words, early_words
from mugraph.sizes.timing import faster_for, gain_words
from mugraph.worker.documents import Known

_WAITING: dict[values.RegionStatus, str] = {"queued": "to be searched", "searching": "searching for kernels"}


def region_state(known: Known, number: int, status: values.RegionStatus | None = None) -> values.Region:
    """status: what it is now, where that is not what was found."""
    region, key = known.trace.regions[number], known.keys[number]
    state = _traced(known, region, key, known.trace.shares.get(number))
    result = known.results.get(key)
    if number in known.applied:
        message = f"{region.function}: a generated kernel replaces this code already"
        return _with(state, status="applied", message=message)
    if region.status is not None:
        return _with(state, status=region.status, message=region.reason or f"{region.function} cannot be searched")
    if status is not None or result is None:
        status = status or "queued"
        return _with(state, status=status, message=f"{region.function}: {_WAITING.get(status, status)}")
    gain = in_a_run(result.timing) if result.status == "improved" else None
    return _with(state, share=_share(known.trace.shares.get(number), gain), **_found(result))


def _share(share: Share | None, gain: float | None) -> values.Share | None:
    if share is None:
        return None
    overall = finite(share.overall(gain))
    return values.Share(share.part, share.own, share.calls, share.whole, overall, share.fitting_words)


def all_states(known: Known, queued: Collection[int] = ()) -> list[values.Region]:
    """queued: positions of the regions that will be searched, whatever was found before."""
    return [
        region_state(known, number, "queued" if number in queued else None)
        for number in range(len(known.trace.regions))
    ]


def _with(state: values.Region, **changes: object) -> values.Region:
    return msgspec.structs.replace(state, **changes)


def _traced(known: Known, region: Region, key: str, share: Share | None) -> values.Region:
    return values.Region(
        key=key,
        function=region.function,
        range=to_range(region.range),
        name_range=to_range(known.heads.get(region.function, region.range)),
        status="queued",
        message="",
        statements=[to_range(place) for place in statements(region)],
        inputs=[
            values.Input(said(live.expression), list(region.values[live.value].shape), region.values[live.value].dtype)
            for live in region.live_ins
        ],
        sizes=region.dynamic.words if region.dynamic is not None else "",
        share=_share(share, None),
    )


def statements(region: Region) -> tuple[Range, ...]:
    """Places of the traced calls, each once, in the order they run."""
    return tuple(dict.fromkeys(call.range for call in region.calls))


def _found(result: RegionResult) -> dict[str, object]:
    plan = result.plan
    verdicts = verdicts_of(plan)
    kernels = [kernel for kernel in plan.mugraph.kernels if isinstance(kernel, GraphKernel)] if plan else []
    verified = bool(verdicts) and all(verdict.passed for verdict in verdicts)
    return {
        "status": result.status,
        "message": _message(result, verified),
        "verified": verified,
        "lax": bool(verdicts) and all(verdict.lax for verdict in verdicts),
        "applicable": result.status == "improved" and plan is not None,
        "evidence": [
            *(sentence for verdict in verdicts for sentence in evidence(verdict)),
            *filter(None, [beside_words(result), early_words(result)]),
        ],
        "timing": _timing(result),
        "search": _search(result.search, all(unit.from_store for unit in result.units)) if result.units else None,
        "kernels": [kernel.name for kernel in kernels],
        "block_ops": sum(len(kernel.block.block_ops) for kernel in kernels),
        "id": mugraph_id(plan) if plan else "",
        "candidates": [to_candidate(unit.kernel, one) for unit in result.units for one in unit.considered],
    }


def _message(result: RegionResult, verified: bool) -> str:
    left = result.unsearched if result.plan is not None else None
    return "; ".join(filter(None, (_outcome(result, verified), left)))


def _outcome(result: RegionResult, verified: bool) -> str:
    timing = result.timing
    if result.status != "improved" or not timing.gains:
        return result.reason or f"{result.region.function}: nothing faster than PyTorch was found"
    checked = "verified" if verified else "NOT VERIFIED"
    device = timing.device.upper() if timing.source == "estimated" else timing.device
    gain, where = gain_words(result.region, timing, sign="×"), ""
    if result.region.dynamic is not None and timing.sizes:
        where = f" at {result.region.dynamic.range.name} = {timing.at}"
    if timing.source == "measured" and timing.baseline_us is not None and timing.optimized_us is not None:
        times = f"measured{where} {timing.optimized_us:.1f} µs against {timing.baseline_us:.1f}"
        return f"{gain}; on {device}, {checked}; {times}"
    return f"{gain} on {device}, {checked}; not measured"


def _timing(result: RegionResult) -> values.Timing | None:
    timing, dynamic = result.timing, result.region.dynamic
    if timing.baseline_us is None and timing.optimized_us is None:
        return None
    return values.Timing(
        timing.source,
        timing.device,
        timing.method,
        finite(timing.baseline_us),
        finite(timing.optimized_us),
        finite(timing.speedup),
        _finite(timing.peers_us),
        f"{dynamic.range.name} = {timing.at}" if dynamic is not None and timing.sizes else "",
        faster_for(result.region, timing),
        [
            values.SizeTiming(
                row.size,
                finite(row.baseline_us),
                finite(row.optimized_us),
                finite(row.speedup),
                _finite(row.peers_us),
                row.best_peer,
                finite(row.best_speedup),
                _called(row),
                row.gains,
            )
            for row in timing.sizes
        ],
        timing.best_peer,
        finite(timing.best_speedup),
        _called(timing),
        timing.compare_with,
    )


def _called(figures: Figures) -> values.Called | None:
    called = figures.as_called
    if called is None:
        return None
    return values.Called(
        finite(called.baseline_us),
        finite(called.optimized_us),
        finite(called.speedup),
        _finite(called.peers_us),
        called.best_peer,
        finite(called.best_speedup),
        called.method,
    )


def _finite(peers_us: Mapping[str, float]) -> dict[str, float]:
    return {name: us for name, us in peers_us.items() if finite(us) is not None}


def _search(report: SearchReport, from_store: bool) -> values.SearchSummary:
    return values.SearchSummary(
        report.topologies,
        report.candidates,
        report.complete,
        report.ended_by,
        report.total_s,
        report.first_verified_s,
        from_store,
    )


def to_candidate(kernel: str, one: Considered) -> values.Candidate:
    return values.Candidate(
        kernel, one.number, one.seconds, one.words, one.block_ops, one.estimate_us, one.measured_us, one.chosen
    )


def to_range(place: Range) -> values.Range:
    return values.Range(
        values.Position(place.start.line, place.start.character), values.Position(place.end.line, place.end.character)
    )
