"""Times of one launch on the current GPU: CUDA-graph replay, cold second-level cache. Child process only.

The launches of one graph run back to back, so a sample is (time of the replay) / (launches): what the kernel costs in a
program that is itself replayed, without the host's time to launch it. `called_us` has that time: what a call costs in
a program that makes it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from mugraph.ir.calls import Triangle
from mugraph.ir.dtypes import DRAWN, ELEMENTS
from mugraph.tune.messages import InputSpec
from mugraph.tune.rotation import CACHE_TIMES, LONG_US, rotation, shortened

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, one.torch) for name, one in ELEMENTS.items() if name in DRAWN}
Function = Callable[..., object]
_RECORDED = 4
"""Calls after which its graphs are recorded: it compiles, warms up, records and replays."""
_LEAST = 2.0**-10
"""Of numbers without a sign: among millions of float16 some would be zeros, which have no logarithm."""
_PART = 1 << 26
"""Elements that are drawn, and compared, at once."""


def storage_elements(spec: InputSpec) -> int:
    """Elements of memory a tensor of this shape and these strides spans, with those before its first one."""
    if 0 in spec.shape:
        return 0
    return spec.skew + 1 + sum((size - 1) * stride for size, stride in zip(spec.shape, spec.strides, strict=True))


def make_input(spec: InputSpec, generator: torch.Generator) -> torch.Tensor:
    """A tensor of exactly this layout. Values are normally distributed (non-negative ones would hide cancellation; only
    where a root is taken of them they have no sign), integers and truth values evenly."""
    if spec.triangle is not None:
        return _triangle(spec, spec.triangle, generator.device)
    count = storage_elements(spec)
    if DTYPES[spec.dtype].is_complex:
        values = torch.randn(count, generator=generator, device=generator.device, dtype=DTYPES[spec.dtype])
        return _seen(values * spec.scale, spec)
    if not DTYPES[spec.dtype].is_floating_point:
        high = min(spec.high, 2 if spec.dtype == "bool" else torch.iinfo(DTYPES[spec.dtype]).max)
        places = torch.randint(high, (count,), generator=generator, device=generator.device)
        return _seen(places.to(DTYPES[spec.dtype]), spec)
    storage = torch.empty(count, device=generator.device, dtype=DTYPES[spec.dtype])
    for part in _parts(storage):
        values = torch.randn(len(part), generator=generator, device=generator.device, dtype=torch.float32)
        part.copy_((values.abs_().add_(_LEAST) if spec.positive else values).mul_(spec.scale))
    return _seen(storage, spec)


def _seen(storage: torch.Tensor, spec: InputSpec) -> torch.Tensor:
    return storage.as_strided(spec.shape, spec.strides, spec.skew)


def _triangle(spec: InputSpec, triangle: Triangle, device: torch.device) -> torch.Tensor:
    below, above = (float("-inf") if number is None else number for number in (triangle.below, triangle.above))
    part = torch.ones(spec.shape[-2:], dtype=torch.bool, device=device).tril(triangle.diagonal)
    storage = torch.zeros(storage_elements(spec), dtype=DTYPES[spec.dtype], device=device)
    tensor = _seen(storage, spec)
    return tensor.copy_(torch.where(part, below, above))


def make_inputs(specs: Sequence[InputSpec], generator: torch.Generator) -> list[torch.Tensor]:
    return [make_input(spec, generator) for spec in specs]


def set_bytes(specs: Sequence[InputSpec]) -> int:
    """Bytes of memory one set of inputs takes."""
    return sum(storage_elements(spec) * DTYPES[spec.dtype].itemsize for spec in specs)


@dataclass
class Sets:
    """Sets of inputs. Dozens of candidates are timed on the same, one after the other: drawing them takes longer than
    the timing does. Those of one kind are kept, and gone before others are drawn."""

    device: str = "cuda"
    _kept: tuple[tuple[tuple[InputSpec, ...], int, int], list[list[torch.Tensor]]] | None = None

    def of(self, specs: tuple[InputSpec, ...], count: int, seed: int) -> list[list[torch.Tensor]]:
        key = specs, count, seed
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            generator = torch.Generator(device=self.device).manual_seed(seed)
            self._kept = key, [make_inputs(specs, generator) for _ in range(count)]
        return self._kept[1]

    def room(self, specs: tuple[InputSpec, ...], seed: int) -> int:
        """Bytes that sets of these inputs may take: half of what is free, or what those do that are there."""
        if self._kept is not None:
            (kept, count, own), _ = self._kept
            if (kept, own) == (specs, seed):
                return max(1, count) * set_bytes(specs)
            self._kept = None
        return free_bytes() // 2

    def forget(self) -> None:
        self._kept = None


_sets = Sets()


def forget_inputs() -> None:
    """Those that were kept for what is timed next."""
    _sets.forget()


def free_bytes() -> int:
    """Of the device, that other processes do not have."""
    if not torch.cuda.is_available():
        return sys.maxsize
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


class TooLong(Exception):
    """A launch takes longer than is of interest. us: it took"""

    def __init__(self, us: float) -> None:
        super().__init__(f"a launch takes {us:.0f} µs")
        self.us = us


class Replayable:
    """A function captured into one CUDA graph over rotating copies of its inputs; one that cannot be captured, as it
    copies from the host (`torch.tensor(0.5, device=...)`), is called as often instead."""

    def __init__(
        self,
        function: Function,
        specs: Sequence[InputSpec],
        l2_bytes: int,
        seed: int = 0,
        limit_us: float | None = None,
    ) -> None:
        """limit_us: of one launch. Raises TooLong."""
        self._plan = rotation(set_bytes(specs), l2_bytes, _sets.room(tuple(specs), seed))
        self._copies = _sets.of(tuple(specs), self._plan.copies, seed)
        self._flush = torch.empty(CACHE_TIMES * l2_bytes, dtype=torch.int8, device="cuda") if self._plan.flush else None
        self._function = function
        us = self._warm_up(function)
        if limit_us is not None and us > max(limit_us, LONG_US):
            raise TooLong(us)
        self._plan = shortened(self._plan, us)
        self._graph = self._captured()
        self.replay_us()  # the first replay uploads the graph

    def _captured(self) -> torch.cuda.CUDAGraph | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.no_grad(), torch.cuda.graph(graph):
                self._launch_all()
        except RuntimeError as error:
            if "capture" not in str(error):
                raise
            torch.cuda.synchronize()
            return None
        return graph

    def _launch_all(self) -> None:
        for launch in range(self._plan.launches):
            # The result is dropped at once, so that its memory serves the next launch of the same graph.
            self._function(*self._copies[launch % self._plan.copies])

    def _warm_up(self, function: Function) -> float:
        """Compile, and let libraries allocate their workspaces, on a stream that is not captured. Microseconds that the
        last launch took, with the host's time for it."""
        us = 0.0
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            for copy in range(3):
                start.record(stream)
                function(*self._copies[copy % self._plan.copies])
                end.record(stream)
                end.synchronize()
                us = start.elapsed_time(end) * 1000
                if copy and us > LONG_US:
                    break
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        return us

    def call(self) -> object:
        """As a program calls it: on the same tensors each time."""
        return self._function(*self._copies[0])

    def replay_us(self) -> float:
        """Microseconds of one launch, over one replay."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if self._flush is not None:
            self._flush.zero_()
        start.record()
        if self._graph is not None:
            self._graph.replay()
        else:
            with torch.no_grad():
                self._launch_all()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000 / self._plan.launches


class Replaying:
    """A function that replays CUDA graphs of its own, and is timed as a program calls it only: it cannot be captured
    again, and would record a graph for each set of inputs. Its inputs keep their places, as parameters do, so that none
    is copied before a replay."""

    def __init__(self, function: Function, specs: Sequence[InputSpec], seed: int = 0) -> None:
        self._inputs = make_inputs(specs, torch.Generator(device="cuda").manual_seed(seed))
        self._function = function
        keep_place: Callable[[torch.Tensor], None] = cast(Any, torch)._dynamo.mark_static_address
        for tensor in self._inputs:
            keep_place(tensor)
        for _ in range(_RECORDED):
            self.call()

    def call(self) -> object:
        with torch.no_grad():
            return self._function(*self._inputs)


def called_us(function: Callable[[], object], wait: Callable[[], None], calls: int) -> float:
    """Microseconds of wall time of one call of several, one after the other, until the device has done them.

    wait: for the device
    """
    wait()
    begun = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - begun) * 1e6 / calls


def tensors_of(result: object) -> tuple[torch.Tensor, ...]:
    """What a launcher returned, as a tuple, which may be nothing. Raises TypeError for anything but tensors."""
    values = cast(Sequence[object], result) if isinstance(result, tuple | list) else (result,)
    values = () if result is None else values
    tensors = tuple(value for value in values if isinstance(value, torch.Tensor))
    if len(tensors) != len(values):
        raise TypeError("the function returned something that is not a tensor")
    return tensors


@dataclass
class Errors:
    """Of a result that is compared some rows at a time, relative to the reference's largest absolute value. inf where
    one is not finite and the other is."""

    _most: float = 0.0
    _scale: float = 0.0
    _squares: float = 0.0
    _count: int = 0
    _numbers: int = 0

    def add(self, value: torch.Tensor, reference: torch.Tensor) -> None:
        if value.shape != reference.shape:
            self._most = math.inf
            return
        # Of gigabytes, a part at a time: float64 takes twice the memory, and there may be little left.
        for mine, truth in zip(_parts(value), _parts(reference), strict=True):
            self._count += truth.numel()
            self._numbers += int((truth < math.inf).sum())
            finite = torch.isfinite(truth)
            if not bool((torch.isfinite(mine) == finite).all()):
                self._most = math.inf
                continue
            mine, truth = (torch.where(finite, one.double(), 0.0) for one in (mine, truth))
            self._scale = max(self._scale, float(truth.abs().max()))
            apart = mine.sub_(truth).abs_()
            self._most = max(self._most, float(apart.max()))
            self._squares += float(apart.square_().sum())

    @property
    def largest(self) -> float:
        """Difference."""
        return self._most / (self._scale or 1.0)

    @property
    def mean(self) -> float:
        """Root mean square difference."""
        if self._most == math.inf:
            return math.inf
        return math.sqrt(self._squares / max(1, self._count)) / (self._scale or 1.0)

    @property
    def share_of_numbers(self) -> float:
        """How many of the reference's elements are numbers, a mask's minus infinity among them."""
        return self._numbers / self._count if self._count else 1.0


def relative_errors(value: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    """Largest and root mean square difference."""
    errors = Errors()
    errors.add(value, reference)
    return errors.largest, errors.mean


def norms_apart(value: torch.Tensor, reference: torch.Tensor) -> float:
    """Norm of the difference over the reference's, in float64; NaN where something is no number."""
    apart = whole = 0.0
    for mine, truth in zip(_parts(value), _parts(reference), strict=True):
        exact = truth.double()
        apart += float((mine.double() - exact).square_().sum())
        whole += float(exact.square_().sum())
    return math.sqrt(apart / whole) if whole else math.sqrt(apart)


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.split(tensor.reshape(-1), _PART) if tensor.numel() else ()
