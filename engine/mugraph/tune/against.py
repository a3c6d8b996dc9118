"""A region's generated code against what PyTorch offers for the same code, on two clocks: on the device alone, and as a
program calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mugraph.tune.measure import CALLED, METHOD, Measurer, Refused, Results
from mugraph.tune.messages import DIFFERS, REFUSED, REPLAYS, Agreed, Applied, Compiler, InputSpec, Subject
from mugraph.tune.process import Unavailable
from mugraph.tune.statistics import CALLED_DRIFT, DRIFT, Summary, gain

PEERS: Mapping[str, Compiler] = {
    "eager": "none",
    "torch.compile": "default",
    "max-autotune": "max-autotune-no-cudagraphs",
}
"""Those that are timed where none is asked for, the code as it runs first."""
CALLED_PEERS: Mapping[str, Compiler] = {"reduce-overhead": REPLAYS}
"""Those that have a time as a program calls them, and none on the device alone."""
WITHOUT_GUARDS = "without the guards of its objects"
"""Said of what runs where it is further from float64 than the code is."""


@dataclass(frozen=True)
class Times:
    """Microseconds on one clock.

    us:      of the generated code; None where it has no time
    peers:   by name; the code as it runs is one of them
    gain:    over the code as it runs; best_gain: over the best peer; below 1 where it is slower, exactly 1.0 where the
             difference is within the noise, None where one of the two has no time
    """

    us: float | None = None
    peers: Mapping[str, float] = field(default_factory=dict[str, float])
    gain: float | None = None
    best_peer: str | None = None
    best_gain: float | None = None


@dataclass(frozen=True)
class Measurement:
    """All from one interleaved run.

    on_device, as_called: by CUDA graph replay; by wall time, with the guards and the launch
    called_method: how the second was taken
    refused: why a peer has no time
    reason:  why the generated code could not be run, or gave another result
    """

    device: str
    on_device: Times
    as_called: Times
    method: str = METHOD
    called_method: str = CALLED
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    error: float | None = None
    reason: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])


def times_itself(name: str) -> bool:
    """Whether a peer's compiler is on the device for long, as it measures its own choices or records graphs."""
    return {**PEERS, **CALLED_PEERS}[name] not in ("none", "default")


def peer_subjects(eager: Subject, names: Sequence[str]) -> list[Subject]:
    """The code as it runs, and compiled."""
    known = {**PEERS, **CALLED_PEERS}
    return [replace(eager, name=name, compiler=known[name]) for name in names]


def against_peers(
    ours: Subject,
    eager: Subject,
    inputs: Sequence[InputSpec],
    measurer: Measurer,
    *,
    applied: Applied | None = None,
    names: Sequence[str] | None = None,
    on_its_own: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Measurement:
    """names: of the peers; None: those of PEERS. applied: what the program calls, once `ours` is applied; on_its_own:
    whether that is compared with the code on the program's own tensors as well"""
    names = list(PEERS) if names is None else names
    try:
        hello = measurer.hello()
    except Unavailable as error:
        return Measurement("", Times(), Times(), reason=str(error))
    agreed = measurer.agree(ours, eager, inputs)
    reason = None
    error = None
    if isinstance(agreed, Agreed):
        error = agreed.error
        if not agreed.passed:
            reason = f"{DIFFERS} by {agreed.error:.2e}, more than {agreed.limit:.2e}"
    else:
        reason = agreed.reason
    subjects = peer_subjects(eager, names)
    found = measurer.compare_called(
        [*subjects, ours] if reason is None else subjects,
        inputs,
        ours.name,
        applied,
        reference=eager if on_its_own else None,
        progress=progress,
    )
    refused = {name: s.reason for name, s in found.device.items() if isinstance(s, Refused)}
    on_device = _times(found.device, ours.name, names, DRIFT)
    why = found.not_entered or ""
    if reason is None and (REFUSED in why or why.startswith(DIFFERS)):
        reason = why
    method = CALLED if found.not_entered is None else f"{CALLED}, {WITHOUT_GUARDS} ({found.not_entered})"
    alone = f"; there was no memory for {', '.join(found.alone)} beside the others: timed alone" if found.alone else ""
    return Measurement(
        hello.device,
        on_device,
        _times(found.called, ours.name, names, CALLED_DRIFT),
        METHOD + alone,
        method + alone,
        refused=refused,
        error=error,
        reason=reason if reason is not None or on_device.us is not None else refused.get(ours.name),
        versions=hello.versions,
    )


def _times(results: Results, ours: str, names: Sequence[str], drift: float) -> Times:
    known = {name: s for name, s in results.items() if isinstance(s, Summary) and name in names}
    peers = {name: summary.median_us for name, summary in known.items()}
    best = min(peers, key=lambda name: peers[name], default=None)
    mine = results.get(ours)
    code = names[0] if names else ""
    if not isinstance(mine, Summary):
        return Times(None, peers, best_peer=best)
    return Times(
        mine.median_us,
        peers,
        gain(known[code], mine, drift) if code in known else None,
        best,
        gain(known[best], mine, drift) if best is not None else None,
    )
