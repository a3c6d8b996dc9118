"""What a call of a whole model takes: as its file was, compiled, and as it is edited; replayed as a CUDA graph, and as
a program calls it. All ways are timed in turns in one process. The caches are as the call before has left them.

A graph is replayed by itself, between two events, so that what the device needs to begin and to end is in its time; and
in a row, as often as the program calls it in a row. Only the latter can be compared with the calls: there the device
begins the next one while it ends the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from mugraph.sharing import turn
from mugraph.tune.against import CALLED_PEERS, PEERS
from mugraph.tune.messages import REPLAYS
from mugraph.tune.statistics import summarise
from mugraph.tune.timing import called_us

Call = Callable[[], object]

OURS = "mugraph"
ROUNDS = 15
_WARM_UPS = 4
"""Calls before the first that is timed: kernels compile, compare themselves with PyTorch, and are prepared."""
_CALLED_S = 0.05
"""Of one round's calls in a row."""


def whole_times(
    model: torch.nn.Module, inputs: Sequence[object], ours: Call, peers: Sequence[str], until: float
) -> Mapping[str, object]:
    """Microseconds by the names of the peers and "mugraph": of a replay by itself (device_us), of one of several in a
    row (device_in_row_us), of one of as many calls in a row, in wall time (called_us); how many (in_row); why one has
    none.

    model: as the file was, on the device. until: time.monotonic() after which no other way is made ready
    """
    ready: dict[str, Call] = {}
    refused: dict[str, str] = {}
    for name in (*(name for name in (*PEERS, *CALLED_PEERS) if name in peers), OURS):
        if time.monotonic() > until and name != OURS:
            refused[name] = "the comparison took too long"
            continue
        call = ours if name == OURS else _peer(model, inputs, name)
        try:
            with turn(alone=False):
                _warm_up(call)
        except Exception as error:
            refused[name] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            continue
        ready[name] = call
    with turn(alone=True):
        return {**_timed(ready, refused), "refused": refused}


def _timed(ready: Mapping[str, Call], refused: dict[str, str]) -> Mapping[str, object]:
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    for name, call in ready.items():
        if name not in CALLED_PEERS:
            graph = _captured(call)
            if graph is None:
                refused[f"{name}, replayed"] = "it cannot be captured"
            else:
                graphs[name] = graph
    in_row = {name: _in_row(call) for name, call in ready.items()}
    return {
        "device_us": _medians({name: _replay(graph, 1) for name, graph in graphs.items()}),
        "device_in_row_us": _medians({name: _replay(graph, in_row[name]) for name, graph in graphs.items()}),
        "called_us": _medians({name: _calling(call, in_row[name]) for name, call in ready.items()}),
        "in_row": in_row,
    }


def _peer(model: torch.nn.Module, inputs: Sequence[object], name: str) -> Call:
    compiler = {**PEERS, **CALLED_PEERS}[name]
    function = cast(Callable[..., object], model)
    if compiler == "none":
        return lambda: function(*inputs)
    mode = None if compiler == "default" else compiler
    compiled = cast(Callable[..., object], cast(Any, torch).compile(function, mode=mode, dynamic=False))
    if compiler != REPLAYS:
        return lambda: compiled(*inputs)
    begin: Callable[[], None] = cast(Any, torch).compiler.cudagraph_mark_step_begin
    keep_place: Callable[[torch.Tensor], None] = cast(Any, torch)._dynamo.mark_static_address
    for one in inputs:
        if isinstance(one, torch.Tensor):
            keep_place(one)

    def call() -> object:
        begin()
        return compiled(*inputs)

    return call


def _warm_up(call: Call) -> None:
    """On a stream of its own, as what is captured later is."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def _captured(call: Call) -> torch.cuda.CUDAGraph | None:
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.no_grad(), torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    graph.replay()  # the first replay uploads it
    torch.cuda.synchronize()
    return graph


def _replay(graph: torch.cuda.CUDAGraph, replays: int) -> Callable[[], float]:
    """Of one of so many in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def us() -> float:
        start.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000 / replays

    return us


def _in_row(call: Call) -> int:
    """How many calls are timed together."""
    with torch.no_grad():
        once = called_us(call, torch.cuda.synchronize, 2)
    return max(2, int(_CALLED_S * 1e6 / once))


def _calling(call: Call, calls: int) -> Callable[[], float]:
    def us() -> float:
        with torch.no_grad():
            return called_us(call, torch.cuda.synchronize, calls)

    return us


def _medians(timed: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    samples: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(ROUNDS):
        for name, us in timed.items():
            samples[name].append(us())
    return {name: summarise(taken).median_us for name, taken in samples.items()}
