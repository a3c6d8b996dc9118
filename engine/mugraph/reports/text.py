"""What a person reads of a result, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mugraph.events import Figures, FileResult, RegionResult, Timing, UnitResult
from mugraph.ir.drawing import draw_tree
from mugraph.ir.kernel import KernelSource
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.shares import Share, largest_first, share_words
from mugraph.plans.plan import KernelStep
from mugraph.protocol.gain_words import here_words, in_a_run
from mugraph.reports.document import verdicts_of
from mugraph.reports.evidence import evidence, evidence_of_all
from mugraph.reports.said_once import said_once
from mugraph.sizes.timing import gain_words
from mugraph.targets import TARGETS
from mugraph.tune.against import WITHOUT_GUARDS
from mugraph.units.outside import outside_words

_MARGIN = "  "
_NARROW, _WIDE = 100, 160
"""Columns a drawing has at least, and where it is not for a terminal."""
PHASES = ("search", "verification", "code generation", "compilation", "peers", "measuring", "waiting", "other")
"""What the time of a region is spent on, as `-v` says it."""
_STYLE = {
    "improved": "bold green",
    "no-gain": "yellow",
    "unsupported": "yellow",
    "needs-shapes": "cyan",
    "failed": "bold red",
}


def print_report(
    result: FileResult, console: Console, *, verbose: bool, kernels: bool = True, offer: bool = True
) -> None:
    """Of one region all there is. Of several a few lines each, unless verbose: a model's graphs, evidence and kernels
    are a thousand lines.

    kernels: the generated source as well. offer: say how kernels are written into the file. Drawings and code are never
    wrapped: a terminal that is too narrow breaks the lines itself, and a file holds them as they are."""
    width = console.width - len(_MARGIN) if console.is_terminal else _WIDE
    whole = verbose or sum(region.plan is not None for region in result.regions) == 1
    order = largest_first(range(len(result.regions)), result.shares)
    for number, others in [(one, 0) for one in order] if verbose else said_once(result.regions, order):
        region, share = result.regions[number], result.shares.get(number)
        for part in _region(region, share, verbose, whole, kernels, max(_NARROW, width)):
            if isinstance(part, _Verbatim):
                for line in part.text.split("\n"):
                    line.rstrip()
                    console.print(Text(_MARGIN).append_text(line), soft_wrap=True)
            else:
                console.print(part)
        if others:
            ways = "another way" if others == 1 else f"{others} other ways"
            console.print(_said("", f"So it is in {ways} in which this code is called: -v says each."))
        console.print()
    console.print(_summary(result, offer), soft_wrap=True)
    if not whole and any(region.plan is not None for region in result.regions):
        console.print(
            f"Graphs, evidence and kernels: mugraph optimize {escape(result.path)}:NAME, or -v", soft_wrap=True
        )


@dataclass(frozen=True)
class _Verbatim:
    """Lines that mean something as they stand."""

    text: Text


def _region(
    result: RegionResult, share: Share | None, verbose: bool, whole: bool, kernels: bool, width: int
) -> Iterator[RenderableType | _Verbatim]:
    region = result.region
    first, last = region.range.start.line + 1, region.range.end.line + 1
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    yield Text.assemble(
        (region.function, "bold"), f"  {lines}  ", (result.status, _STYLE.get(result.status, "")), _gain(result)
    )
    if result.reason:
        yield _said("", result.reason)
    if result.unsearched and result.plan is not None:
        yield _said("left", result.unsearched)
    left = outside_words(region, _computed(result))
    if left and left not in (result.reason or ""):
        yield _said("plain", f"{left}, and PyTorch's own")
    if share is not None:
        gain = in_a_run(result.timing) if result.status == "improved" else None
        yield _said("share", share_words(share, gain, here_words(gain, result.timing.source == "measured")))
    if region.dynamic is not None:
        yield _said("sizes", f"{region.dynamic.words}; tiles and blocks below are for the largest")
    if result.plan is not None:
        verdicts = verdicts_of(result.plan)
        if whole:
            yield _Verbatim(Text(draw_tree(result.plan.mugraph, width).rstrip()))
        else:
            yield _said("kernels", kernels_words(result.plan.mugraph))
        for sentence in chain.from_iterable(map(evidence, verdicts)) if whole else evidence_of_all(verdicts):
            yield _said("verified", sentence)
        for number, sentence in enumerate(times_text(result)):
            yield _said("time" if number == 0 else " ", sentence)
        for words in filter(None, (beside_words(result), early_words(result))):
            yield _said("launch", words)
        if kernels and whole:
            yield from _sources(result)
    if result.units and whole:
        yield _said("search", search_text(result))
    if verbose:
        for unit in result.units:
            for detail in _details(unit):
                yield Padding(detail, (0, 0, 0, len(_MARGIN)))


def _said(what: str, sentence: str) -> RenderableType:
    """A sentence under its heading, wrapped beside it."""
    if not what:
        return Padding(Text(sentence), (0, 0, 0, len(_MARGIN)))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=len("verified"), no_wrap=True)
    grid.add_column()
    grid.add_row(Text(what, "dim"), Text(sentence))
    return Padding(grid, (0, 0, 0, len(_MARGIN)), expand=False)


def _gain(result: RegionResult) -> str:
    gain = gain_words(result.region, result.timing) if result.status == "improved" else ""
    measured = " (measured)" if result.timing.source == "measured" else ""
    return f"  {gain}{measured}" if gain else ""


def kernels_words(graph: MuGraph) -> str:
    """ "3 generated: step_1, step_2, step_3; of PyTorch's: addmm"."""
    generated = [kernel.name for kernel in graph.kernels if isinstance(kernel, GraphKernel)]
    chosen = [kernel.name for kernel in graph.kernels if isinstance(kernel, LibraryKernel) and kernel.block is not None]
    found = [f"{len(generated)} generated: {', '.join(generated)}"] if generated else []
    return "; ".join([*found, *([f"of PyTorch's: {', '.join(chosen)}"] if chosen else [])])


def beside_words(result: RegionResult) -> str:
    """ "q, k and v are one launch, side by side", "the sums of k are combined in the same launch"; "" for none."""
    groups = [[part.name for part in kernel.joined] for kernel in _launched(result) if kernel.joined]
    said = [f"{', '.join(names[:-1])} and {names[-1]} are one launch, side by side" for names in groups]
    pairs = [kernel.combined for kernel in _launched(result) if kernel.combined is not None]
    said += [f"the sums of {pair.first.name} are combined in the same launch" for pair in pairs]
    return "; ".join(said)


def _computed(result: RegionResult) -> set[int]:
    """Values that kernels compute."""
    steps = [step for step in result.plan.steps if isinstance(step, KernelStep)] if result.plan is not None else []
    return {value for step in steps for call in step.unit.calls for value in call.outputs}


def _launched(result: RegionResult) -> list[KernelSource]:
    """Generated kernels."""
    steps = [step for step in result.plan.steps if isinstance(step, KernelStep)] if result.plan is not None else []
    sources = [result.sources[step.kernel.name] for step in steps if step.kernel.name in result.sources]
    return [kernel for source in sources for kernel in source.kernels if kernel.library is None]


def early_words(result: RegionResult) -> str:
    """ "2 of 3 kernels start while the kernel before them ends"; "" for none."""
    kernels = _launched(result)
    count = sum(kernel.early for kernel in kernels)
    if not count:
        return ""
    what = "starts while the kernel before it ends" if count == 1 else "start while the kernel before them ends"
    return f"{count} of {len(kernels)} kernels {what}"


def times_text(result: RegionResult) -> list[str]:
    """One sentence; of a size in a range one for each size that was timed, and how that was done."""
    region, timing = result.region, result.timing
    if region.dynamic is None or not timing.sizes:
        return [time_text(timing)]
    rows: list[str] = []
    for row in timing.sizes:
        own = "" if row.gains else "; the original code runs"
        gain = f", {row.speedup:.2f}x" if row.speedup is not None else ""
        times = f"{_both(row.baseline_us, row.optimized_us)}{gain}{_as_called(row)}"
        rows.append(f"{region.dynamic.range.name} = {row.size}: {times}{own}{_peers(row.peers_us)}")
    how = f"ESTIMATED ({timing.method}); not measured"
    how = how if timing.source == "estimated" else f"measured on {timing.device} ({timing.method})"
    others = " and ".join(one.name for one in region.dynamic.others)
    return [*rows, how, *([f"of the least and the largest {others}, what gains less is shown"] if others else [])]


def _both(before_us: float | None, after_us: float | None) -> str:
    if before_us is None or after_us is None:
        return "not known"
    return f"{before_us:.1f} µs -> {after_us:.1f} µs"


def _peers(peers_us: Mapping[str, float]) -> str:
    named = ", ".join(f"{name} {us:.1f}" for name, us in peers_us.items())
    return f" ({named})" if named else ""


def time_text(timing: Timing) -> str:
    if timing.baseline_us is None or timing.optimized_us is None:
        return "not known"
    both = _both(timing.baseline_us, timing.optimized_us)
    peers = ", ".join(f"{name} {us:.1f}" for name, us in timing.peers_us.items())
    if timing.source == "estimated":
        return f"{both}, ESTIMATED ({'; '.join(filter(None, (timing.method, peers)))}); not measured"
    return f"{both}{_as_called(timing)}, measured on {timing.device} ({timing.method}; {peers})"


def _as_called(figures: Figures) -> str:
    """ ", as called 94.0 µs -> 113.0 µs"."""
    called = figures.as_called
    if called is None:
        return ""
    guards = " without the guards of its objects" if WITHOUT_GUARDS in called.method else ""
    return f", as called {_both(called.baseline_us, called.optimized_us)}{guards}"


def spent_text(spent_s: Mapping[str, float], trace_s: float) -> str:
    """ "trace 1.2 s (of the whole file), search 3.4 s, ..."."""
    parts = [f"{what} {spent_s[what]:.1f} s" for what in PHASES if spent_s.get(what, 0.0) >= 0.05]
    return ", ".join([f"trace {trace_s:.1f} s (of the whole file)", *parts])


def search_text(result: RegionResult) -> str:
    search = result.search
    first = (
        "none verified" if search.first_verified_s is None else f"first verified after {search.first_verified_s:.2f} s"
    )
    space = f"complete to {search.complete_to} operators"
    if not search.complete:
        space = f"{space}, not further (ended by {search.ended_by})"
    stored = ", from the store" if result.units and all(unit.from_store for unit in result.units) else ""
    return (
        f"{search.topologies} topologies, {search.candidates} candidates, {first}, "
        f"{search.total_s:.2f} s, {space}{stored}"
    )


def _sources(result: RegionResult) -> Iterator[_Verbatim]:
    assert result.plan is not None
    for kernel in result.plan.mugraph.kernels:
        if kernel.name in result.sources:
            jit = result.sources[kernel.name].jit
            yield _Verbatim(Syntax("", "python", background_color="default").highlight(jit))


def _details(unit: UnitResult) -> Iterator[RenderableType]:
    """-v: what was searched, what was pruned, and why."""
    program = unit.unit.program
    tree = Tree(Text(f"search unit {program.name}: {len(program.compute_ops)} operators"))
    sizes = ", ".join(f"{axis}={size}" for axis, size in program.sizes.items())
    tree.add(Text(f"axes: {sizes}"))
    if unit.search.pruned:
        pruned = tree.add(Text("pruned by"))
        for reason, count in sorted(unit.search.pruned.items(), key=lambda item: -item[1]):
            pruned.add(Text(f"{reason}: {count:,}"))
    if unit.rejected:
        rejected = tree.add(Text("candidates not used"))
        for reason, count in unit.rejected.items():
            rejected.add(Text(f"{count} x {reason}"))
    if unit.reason:
        tree.add(Text(unit.reason))
    yield tree


def _summary(result: FileResult, offer: bool) -> str:
    counts: dict[str, int] = {}
    for region in result.regions:
        counts[region.status] = counts.get(region.status, 0) + 1
    what = ", ".join(f"{n} {status}" for status, n in counts.items()) or "no region found"
    device = result.device
    if device.kind == "gpu" and device.capability == device.target.capability:
        where = f"on {escape(device.name)}"
    else:
        lacking = "no such GPU here" if device.kind == "gpu" else "no GPU here"
        where = f"{lacking}: times are estimates for {escape(model_name(device.target.name))}"
    how = f"\nWrite it with: mugraph optimize {escape(result.path)} --apply" if offer and counts.get("improved") else ""
    return f"{escape(result.path)}: {what} ({where}){how}"


def model_name(target: str) -> str:
    """The device a model stands for, in words; without a GPU the one that estimates are for."""
    known = TARGETS.get(target)
    return (known and known.title) or target
