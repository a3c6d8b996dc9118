"""`python -m mugraph.research.reference.ablation`: what each idea of the search saves, as in Mirage's Table 5.

RMSNorm and a linear layer, by the operators allowed in a block graph. "full" works on the loop nests in as many
processes as there are processors, the others in one. Sizes are chosen after topologies in the first three columns, and
before operators in the literal algorithm.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mugraph.research.reference.measured import Cell, Variant, measure
from mugraph.research.reference.plot import plot
from mugraph.research.reference.rmsnorm import rmsnorm_linear

BOUNDS = range(5, 12)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, writes the plot. Returns the exit status; 2 (by argparse) for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.reference.ablation", description=__doc__)
    parser.add_argument("--cap", type=_seconds, default=120.0, metavar="SECONDS", help="of each search (default: 120)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="write the times there, too")
    parser.add_argument(
        "--ops", type=_count, nargs="+", default=[*BOUNDS], metavar="N", help="operators (default: 5..11)"
    )
    parser.add_argument("--all", action="store_true", help="also run what must reach the cap, as fewer operators did")
    options = parser.parse_args(arguments)
    console, progress = Console(), Console(stderr=True)
    cells: list[Cell] = []
    bounds = sorted(set(options.ops))
    for cell in measure(rmsnorm_linear(), bounds, options.cap, options.all):
        progress.print(
            f"{cell.max_ops} operators, {cell.variant}: {_seconds_of(cell)}, {cell.graphs} graphs, {cell.note}",
            highlight=False,
        )
        cells.append(cell)
    console.print(table(cells, bounds, options.cap))
    if options.plot:
        options.plot.write_text(plot(cells, options.cap), encoding="utf-8")
    return 0


def table(cells: Sequence[Cell], bounds: Sequence[int], cap: float) -> Table:
    """One row per bound: seconds, and the distinct graphs found in them."""
    found = {(cell.max_ops, cell.variant): cell for cell in cells}
    made = Table(
        title="Time to search RMSNorm + linear, by operators allowed in a block graph",
        caption=f"Wall-clock of one run each, capped at {cap:g} s; graphs found in it, sizes aside. "
        "–: not run, as fewer operators did not finish.",
    )
    made.add_column("operators", justify="right")
    for variant in Variant:
        made.add_column(variant.value, justify="right")
    for max_ops in bounds:
        made.add_row(str(max_ops), *(_text(found.get((max_ops, variant))) for variant in Variant))
    return made


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return f"{_seconds_of(cell)}\n{cell.graphs} graphs; {cell.note}"


def _seconds_of(cell: Cell) -> str:
    time = f"{cell.seconds:.2f} s" if cell.ended_by == "space" else f"> {cell.seconds:.0f} s ({cell.ended_by})"
    return time if cell.variant is Variant.FULL else f"{time}, {cell.processor:.2f} s of it computing"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("a number of seconds above zero is needed")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least one operator is needed")
    return count


if __name__ == "__main__":
    raise SystemExit(main())
