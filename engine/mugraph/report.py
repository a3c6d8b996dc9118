"""What a person reads of a result, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from mugraph.document import verdicts_of
from mugraph.events import FileResult, PieceResult, RegionResult, Timing
from mugraph.ir.draw import draw_tree
from mugraph.verify.verdict import Verdict

_STYLE = {
    "improved": "bold green",
    "no-gain": "yellow",
    "unsupported": "yellow",
    "needs-shapes": "cyan",
    "failed": "bold red",
}


def print_report(result: FileResult, console: Console, *, verbose: bool, kernels: bool = True) -> None:
    """kernels: the generated source as well."""
    for region in result.regions:
        console.print(_region(region, verbose, kernels, max(60, console.width - 4)))
        console.print()
    console.print(_summary(result))


def _region(result: RegionResult, verbose: bool, kernels: bool, width: int) -> RenderableType:
    region = result.region
    first, last = region.range.start.line + 1, region.range.end.line + 1
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    title = Text.assemble(
        (region.function, "bold"), f"  {lines}  ", (result.status, _STYLE.get(result.status, "")), _gain(result)
    )
    body: list[RenderableType] = []
    if result.reason:
        body.append(Text(result.reason))
    if result.plan is not None:
        body.append(Text(draw_tree(result.plan.mugraph, width).rstrip()))
        body += [Text(f"verified  {sentence}") for v in verdicts_of(result.plan) for sentence in evidence(v)]
        body.append(Text(f"time      {time_text(result.timing)}"))
        if kernels:
            body += _sources(result)
    if result.pieces:
        body.append(Text(f"search    {search_text(result)}"))
    if verbose:
        body += [line for piece in result.pieces for line in _details(piece)]
    return Group(title, Padding(Group(*body), (0, 0, 0, 2)))


def _gain(result: RegionResult) -> str:
    if result.status != "improved" or result.timing.speedup is None:
        return ""
    return f"  {result.timing.speedup:.2f}x faster ({result.timing.source})"


def evidence(verdict: Verdict) -> list[str]:
    """What was checked, one sentence each; what was not is said to be not."""
    if not verdict.passed:
        return [f"NOT VERIFIED: {verdict.reason}"]
    bound = (
        f"a wrong graph passes with probability at most {verdict.bound:.1e}"
        if verdict.bound is not None
        else f"no bound on the probability of accepting a wrong graph: {verdict.bound_note or 'none was earned'}"
    )
    sizes = "; ".join(", ".join(f"{a}={n}" for a, n in point.items()) for point in verdict.sizes)
    found = [f"equal over finite fields in {verdict.repetitions} random tests at {sizes} ({bound})"]
    if verdict.max_rel_error is None:
        return [*found, "no floating-point test was run"]
    where = verdict.float_device or "the interpreter"
    reduced = " at reduced sizes" if where == "interpreter" else ""
    eager = (
        "" if verdict.eager_rel_error is None else f"; PyTorch's own in this precision: {verdict.eager_rel_error:.1e}"
    )
    where = "Triton's interpreter" if where == "interpreter" else where
    found.append(f"error against float64 {verdict.max_rel_error:.1e} in {where}{reduced}{eager}")
    return found


def time_text(timing: Timing) -> str:
    if timing.baseline_us is None or timing.optimized_us is None:
        return "not known"
    both = f"{timing.baseline_us:.1f} µs -> {timing.optimized_us:.1f} µs"
    if timing.source == "estimated":
        return f"{both}, ESTIMATED ({timing.method}); not measured"
    peers = ", ".join(f"{name} {us:.1f}" for name, us in timing.peers_us.items())
    return f"{both}, measured on {timing.device} ({timing.method}; {peers})"


def search_text(result: RegionResult) -> str:
    search = result.search
    first = (
        "none verified" if search.first_verified_s is None else f"first verified after {search.first_verified_s:.2f} s"
    )
    space = "complete" if search.complete else f"not complete (ended by {search.ended_by})"
    stored = ", from the store" if result.pieces and all(piece.from_store for piece in result.pieces) else ""
    return (
        f"{search.topologies} topologies, {search.candidates} candidates, {first}, "
        f"{search.total_s:.2f} s, {space}{stored}"
    )


def _sources(result: RegionResult) -> Iterator[RenderableType]:
    assert result.plan is not None
    for kernel in result.plan.mugraph.kernels:
        if kernel.name in result.sources:
            yield Text("kernel")
            yield Syntax(result.sources[kernel.name].jit, "python", background_color="default", word_wrap=True)


def _details(piece: PieceResult) -> Iterator[RenderableType]:
    """-v: what was searched, what was pruned, and why."""
    program = piece.piece.program
    tree = Tree(Text(f"search unit {program.name}: {len(program.compute_ops)} operators"))
    sizes = ", ".join(f"{axis}={size}" for axis, size in program.sizes.items())
    tree.add(Text(f"axes: {sizes}"))
    if piece.search.pruned:
        pruned = tree.add(Text("pruned by"))
        for reason, count in sorted(piece.search.pruned.items(), key=lambda item: -item[1]):
            pruned.add(Text(f"{reason}: {count:,}"))
    if piece.rejected:
        rejected = tree.add(Text("candidates not used"))
        for reason, count in piece.rejected.items():
            rejected.add(Text(f"{count} x {reason}"))
    if piece.reason:
        tree.add(Text(piece.reason))
    yield tree


def _summary(result: FileResult) -> str:
    counts: dict[str, int] = {}
    for region in result.regions:
        counts[region.status] = counts.get(region.status, 0) + 1
    what = ", ".join(f"{n} {status}" for status, n in counts.items()) or "no region found"
    device = result.device
    where = (
        f"on {escape(device.name)}"
        if device.kind == "gpu"
        else f"no GPU here: times are estimates for {escape(model_name(device.target.name))}"
    )
    applied = f"\nWrite it with: mugraph optimize {escape(result.path)} --apply" if counts.get("improved") else ""
    return f"{escape(result.path)}: {what} ({where}){applied}"


def model_name(target: str) -> str:
    """The device a model stands for, in words: without a GPU estimates are for an H100."""
    return "an H100" if target == "cpu" else target
