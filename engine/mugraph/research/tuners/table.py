"""What the runs come to, as a table."""

from __future__ import annotations

from statistics import fmean, median, pstdev

from mugraph.research.answers_table import aligned
from mugraph.research.tuners.runs import Compared, Comparison, best_so_far, by_tuner

NEAR = 0.95
"""Of the most that any tuner has reached."""
ESTIMATE = "ESTIMATES of the cost model with noise; nothing was measured"


def heading(found: Comparison) -> str:
    """Where the figures are from."""
    if found.source == "estimated":
        return f"{ESTIMATE} (target {found.target}, {found.dtype}, {found.trials} trials)"
    return f"measured on {found.device}, {found.date}: {found.method} ({found.dtype}, {found.trials} trials)"


def tables(found: Comparison) -> str:
    every = [one for one in found.operators if by_tuner(one)]
    if not every:
        return "no run has come to its end"
    return "\n\n".join([heading(found), *(_table(one, found.trials) for one in every), _ranks(found)])


def _table(found: Compared, trials: int) -> str:
    """mean, deviation: of the best TFLOPS after all trials, over the seeds. trials to 95 %: the median; - where some
    run does not reach it."""
    rows = [["tuner", "seeds", "mean", "deviation", "least", "most", "trials to 95 %", "trials", "failed"]]
    most = max(best_so_far(run, found.flops, trials)[-1] for runs in by_tuner(found).values() for run in runs)
    for name, runs in by_tuner(found).items():
        curves = [best_so_far(run, found.flops, trials) for run in runs]
        last = [curve[-1] for curve in curves]
        reached = [next((at for at, one in enumerate(curve, 1) if one >= NEAR * most), None) for curve in curves]
        near = [at for at in reached if at is not None]
        rows.append(
            [
                name,
                str(len(runs)),
                *(f"{one:.2f}" for one in (fmean(last), pstdev(last), min(last), max(last))),
                f"{median(near):.0f}" if len(near) == len(reached) else "-",
                f"{fmean(len(run.us) for run in runs):.0f}",
                f"{fmean(sum(us is None for us in run.us) for run in runs):.0f}",
            ]
        )
    kernels = f", {found.asked} kernels {'measured' if found.times else 'asked for'}"
    return f"{found.name}: {found.says} (TFLOPS{kernels})\n{aligned(rows)}"


def _ranks(found: Comparison) -> str:
    """Of operators that all these tuners have runs of."""
    every = [by_tuner(one) for one in found.operators]
    every = [one for one in every if one]
    names = [name for name in every[0] if all(name in one for one in every)]
    shares: dict[str, list[float]] = {name: [] for name in names}
    for one in found.operators:
        runs = by_tuner(one)
        if runs:
            last = {n: fmean(best_so_far(run, one.flops, found.trials)[-1] for run in runs[n]) for n in names}
            for name in names:
                shares[name].append(last[name] / max(max(last.values()), 1e-9))
    rows = [["tuner", "share of the best mean", "least"]]
    for name in sorted(names, key=lambda name: -fmean(shares[name])):
        rows.append([name, f"{fmean(shares[name]):.3f}", f"{min(shares[name]):.3f}"])
    return f"over {len(every)} operators\n{aligned(rows)}"
