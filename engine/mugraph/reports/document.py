"""The JSON document of `mugraph optimize --json`: a contract, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import msgspec

from mugraph.events import Figures, FileResult, RegionResult, SearchReport, Timing
from mugraph.ir.json import mugraph_to_json
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.numbers import said
from mugraph.ir.region import Position, Region
from mugraph.ir.shares import Share, largest_first
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.protocol.gain_words import in_a_run
from mugraph.sizes.timing import spans_of
from mugraph.tune.device import Device
from mugraph.verification.verdict import Lowering, Proof, SameBits, Verdict

Json = dict[str, object]


def file_document(result: FileResult) -> Json:
    return {
        "file": result.path,
        "device": device_document(result.device),
        "regions": [
            region_document(result.regions[number], result.shares.get(number))
            for number in largest_first(range(len(result.regions)), result.shares)
        ],
    }


def device_document(device: Device) -> Json:
    return {"name": device.name, "kind": device.kind, "target": device.target.name}


def region_document(result: RegionResult, share: Share | None = None) -> Json:
    """share: how much of the recorded run the region's function took"""
    region, plan = result.region, result.plan
    kernels = plan.mugraph.kernels if plan else ()
    sources = [result.sources[k.name].standalone() for k in kernels if k.name in result.sources]
    return {
        "function": region.function,
        "range": {"start": _position(region.range.start), "end": _position(region.range.end)},
        "status": result.status,
        "reason": result.reason,
        **({"unsearched": result.unsearched} if result.unsearched else {}),
        "inputs": inputs_document(region),
        **_dynamic(result),
        **_share(share, in_a_run(result.timing) if result.status == "improved" else None),
        "kernels": len(kernels),
        "block_ops": sum(len(k.block.block_ops) for k in kernels if isinstance(k, GraphKernel)),
        "mugraph": mugraph_to_json(plan.mugraph) if plan else {},
        "verification": verification_document(verdicts_of(plan)),
        "timing": _timing(result.timing),
        "search": _search(result.search),
        "kernel_source": "\n\n".join(sources) if sources else None,
    }


def dynamic_document(region: Region) -> Json:
    """`dynamic`, where sizes were declared with ranges: shapes in the document have the largest. Times are given by the
    size of the first range."""
    if region.dynamic is None:
        return {}
    first, *others = [{"name": one.name, "least": one.least, "largest": one.largest} for one in region.dynamic.ranges]
    return {"dynamic": {**first, **({"others": others} if others else {})}}


def _dynamic(result: RegionResult) -> Json:
    """With the spans of the size, both ends included, in which a kernel is faster and would run."""
    document = dynamic_document(result.region)
    for of_size in document.values():
        assert isinstance(of_size, dict)
        of_size["faster_for"] = [list(span) for span in spans_of(result.timing.sizes)]
    return document


def inputs_document(region: Region) -> list[Json]:
    """The region's live-ins, called what the source calls them."""
    return [
        {
            "name": said(live.expression),
            "shape": list(region.values[live.value].shape),
            "dtype": region.values[live.value].dtype,
        }
        for live in region.live_ins
    ]


def verdicts_of(plan: RegionPlan | None) -> list[Verdict]:
    return [step.verdict for step in plan.steps if isinstance(step, KernelStep)] if plan else []


def _ranges_document(verdict: Verdict) -> Json | None:
    """Where a size varies: what is proved for all sizes, and at which the rest is tested."""
    if not verdict.proved_sizes:
        return None
    proved = {axis: list(ends) for axis, ends in verdict.proved_sizes.items()}
    tested = {axis: list(sizes) for axis, sizes in verdict.dynamic_sizes.items()}
    return {
        "proved": {"by": "z3", "sizes": proved, "claims": verdict.proved_claims, "covers": ["memory", "cover"]},
        "tested": {"sizes": tested, "covers": ["algebra", "floating point"]},
    }


def verification_document(verdicts: Sequence[Verdict]) -> Json:
    """Of several kernels: the weakest evidence, and the sum of the bounds (any one of them may be wrong)."""
    bounds = [v.bound for v in verdicts if v.bound is not None]
    errors = [v.max_rel_error for v in verdicts if v.max_rel_error is not None]
    sizes: list[Mapping[str, int]] = [size for verdict in verdicts for size in verdict.sizes]
    return {
        "passed": bool(verdicts) and all(v.passed for v in verdicts),
        "lax": bool(verdicts) and all(v.lax for v in verdicts),
        "repetitions": min((v.repetitions for v in verdicts), default=0),
        "sizes": [dict(size) for size in sizes],
        "bound": sum(bounds) if verdicts and len(bounds) == len(verdicts) else None,
        "max_rel_error": finite(max(errors)) if verdicts and len(errors) == len(verdicts) else None,
        "ulps": ulps_document(verdicts),
        "same_bits": [same_bits_document(verdict.same_bits) for verdict in verdicts],
        "text": [verdict.text for verdict in verdicts],
        "proof": [proof_document(verdict.proof) for verdict in verdicts],
        "lowering": [lowering_document(verdict.lowering) for verdict in verdicts],
        "ranges": [_ranges_document(verdict) for verdict in verdicts],
    }


def ulps_document(verdicts: Sequence[Verdict]) -> Json | None:
    """By the kind of inputs: the largest difference of an element from PyTorch's rounding, in units in the last place.
    None where it is not known of all kernels."""
    if not verdicts or not all(verdict.ulps for verdict in verdicts):
        return None
    kinds = dict.fromkeys(kind for verdict in verdicts for kind in verdict.ulps)
    return {kind: finite(max(verdict.ulps.get(kind, 0.0) for verdict in verdicts)) for kind in kinds}


def same_bits_document(bits: SameBits | None) -> Json | None:
    """Of one kernel; None where that was not looked at."""
    return None if bits is None else {"holds": bits.holds, "why_not": bits.why or None, "apart": bits.apart or None}


def proof_document(proof: Proof | None) -> Json | None:
    """Of the algebra of one kernel's graph; None where no proof was tried."""
    return None if proof is None else {"proved": proof.proved, "sizes": dict(proof.sizes), "note": proof.note}


def lowering_document(lowering: Lowering | None) -> Json | None:
    """Of one kernel's program. passed: null where it was not checked; None where that was not looked at."""
    return None if lowering is None else {"passed": lowering.passed, "note": lowering.note}


def finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and isfinite(value) else None


def _share(share: Share | None, gain: float | None) -> Json:
    """`share`, where the function was recorded. overall: how much faster the run is by the gain in the calls that the
    kernel takes, at most where the region is not the whole function."""
    if share is None:
        return {}
    return {"share": {**msgspec.to_builtins(share), "overall": finite(share.overall(gain))}}


def _position(position: Position) -> Json:
    return {"line": position.line, "character": position.character}


def _peers(peers_us: Mapping[str, float], *, measured: bool) -> Json:
    """Measured times and estimates have different keys: nobody takes one for the other."""
    return {"peers_us": dict(peers_us) if measured else {}, "estimates_us": {} if measured else dict(peers_us)}


def _timing(timing: Timing) -> Json:
    measured = timing.source == "measured"
    return {
        "baseline_us": finite(timing.baseline_us),
        "optimized_us": finite(timing.optimized_us),
        "speedup": finite(timing.speedup),
        **_peers(timing.peers_us, measured=measured),
        "source": timing.source,
        "best_peer": timing.best_peer,
        "best_speedup": finite(timing.best_speedup),
        "as_called": called_document(timing),
        "method": timing.method,
        **_sizes(timing),
    }


def called_document(figures: Figures) -> Json | None:
    """The same figures as a program calls it: wall time, with guards and launch. None where that was not measured."""
    called = figures.as_called
    if called is None:
        return None
    return {
        "baseline_us": finite(called.baseline_us),
        "optimized_us": finite(called.optimized_us),
        "speedup": finite(called.speedup),
        "peers_us": dict(called.peers_us),
        "best_peer": called.best_peer,
        "best_speedup": finite(called.best_speedup),
        "method": called.method,
    }


def _sizes(timing: Timing) -> Json:
    """Of a region with a size in a range: the size that its figures are of, and those of all sizes that were timed."""
    if not timing.sizes:
        return {}
    rows = [
        {
            "size": row.size,
            "baseline_us": finite(row.baseline_us),
            "optimized_us": finite(row.optimized_us),
            "speedup": finite(row.speedup),
            **_peers(row.peers_us, measured=timing.source == "measured"),
            "best_peer": row.best_peer,
            "best_speedup": finite(row.best_speedup),
            "as_called": called_document(row),
        }
        for row in timing.sizes
    ]
    return {"size": timing.at, "sizes": rows}


def _search(report: SearchReport) -> Json:
    return {
        "first_verified_s": report.first_verified_s,
        "total_s": report.total_s,
        "topologies": report.topologies,
        "candidates": report.candidates,
        "complete": report.complete,
    }
