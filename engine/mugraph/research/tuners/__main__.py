"""Compare tuners on products, products of many matrices and convolutions, at the shapes of OpEvo's paper.

    python -m mugraph.research.tuners --json OUT [--trials N] [--seeds N] [--tuners A,B] [--operators MM1,C2]
                                      [--dtype f32] [--plot SVG] [--limit S] [--by-estimate | --show]

On a GPU every kernel is measured once, whichever tuners ask for it. It stops after `--limit` seconds and goes on where
it stopped when it is called again. With --by-estimate no GPU is needed: the objective is the cost model's estimate with
noise that depends on the schedule alone, which favours whoever asks the model. --show only prints the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mugraph.dependencies import installed
from mugraph.research.tuners.compare import compare
from mugraph.research.tuners.curves import curves
from mugraph.research.tuners.operators import OPERATORS, Operator
from mugraph.research.tuners.prepared import prepared
from mugraph.research.tuners.runs import TUNERS, Compared, Comparison, read, write
from mugraph.research.tuners.table import tables
from mugraph.research.tuners.times import Estimated, MeasuredTimes, OutOfTime, Times
from mugraph.store.keys import versions
from mugraph.targets import TARGETS
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import UnknownTarget, detect, resolve
from mugraph.tune.measure import METHOD, Measurer
from mugraph.tune.process import Unavailable
from mugraph.tune.tuners.boosted import NEEDED
from mugraph.verification.float_test import FloatTester

_ESTIMATED_FOR = "h100"


def arguments_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.tuners")
    parser.add_argument("--json", type=Path, required=True, metavar="OUT", help="kept here, and continued")
    parser.add_argument("--trials", type=int, default=512, metavar="N", help="of each run")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="runs of each tuner")
    parser.add_argument("--tuners", default=",".join(TUNERS), help=f"of {', '.join(TUNERS)}")
    names = [one.name for one in OPERATORS]
    parser.add_argument("--operators", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--topologies", type=int, default=2, metavar="N", help="whose schedules are searched")
    parser.add_argument("--dtype", choices=["f32", "f16", "bf16"], default="f32", help="the paper's is f32")
    parser.add_argument("--target", default="auto", help=f"with --by-estimate: a device model; {_ESTIMATED_FOR}")
    parser.add_argument("--by-estimate", action="store_true", help="the cost model with noise, without a GPU")
    parser.add_argument("--limit", type=float, default=540.0, metavar="SECONDS", help="of this call")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="best-so-far curves")
    parser.add_argument("--show", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 while there is more to do, 2 where it cannot be done."""
    given = arguments_of(arguments)
    until = time.monotonic() + given.limit
    try:
        found = read(given.json) if given.json.exists() else None
        if not given.show:
            why, found = _begun(given, found)
            if why is not None or found is None:
                print(why, file=sys.stderr)
                return 2
    except (OSError, msgspec.DecodeError) as error:
        print(f"{given.json} cannot be read: {error}", file=sys.stderr)
        return 2
    if found is None:
        print(f"there is no {given.json}", file=sys.stderr)
        return 2
    left = [] if given.show else _compared(given, found, until)
    if left is None:
        return 2
    print(tables(found))
    if given.plot is not None:
        given.plot.write_text(curves(found), encoding="utf-8")
    if left:
        print(f"still to do: {', '.join(left)}; call again to go on", file=sys.stderr)
    return 1 if left else 0


def _begun(given: argparse.Namespace, found: Comparison | None) -> tuple[str | None, Comparison | None]:
    """Why it cannot be done, or what is to be gone on with."""
    tuners, operators = given.tuners.split(","), given.operators.split(",")
    unknown = [one for one in tuners if one not in TUNERS] + [
        one for one in operators if one not in {known.name for known in OPERATORS}
    ]
    if unknown:
        return f"there is no {', '.join(unknown)}", None
    if "boosted" in tuners and not installed("sklearn"):
        return f"{NEEDED}; or leave it out with --tuners", None
    device = detect()
    if not given.by_estimate and device.kind != "gpu":
        return f"{device.note or 'there is no GPU here to measure on'}; --by-estimate needs none", None
    try:
        auto = _ESTIMATED_FOR if given.by_estimate and device.kind != "gpu" else "auto"
        target = resolve(auto if given.target == "auto" else given.target, device).name
    except UnknownTarget as error:
        return str(error), None
    source = "estimated" if given.by_estimate else "measured"
    new = Comparison(source, target, given.dtype, given.topologies, trials=given.trials)
    new.device, new.method = ("", "") if given.by_estimate else (device.name, METHOD)
    if found is None:
        new.date, new.versions = datetime.now(UTC).date().isoformat(), versions()
        return None, new

    def same(one: Comparison) -> tuple[object, ...]:
        return one.source, one.target, one.dtype, one.topologies, one.device, one.trials

    if same(found) != same(new):
        return f"{given.json} is of {same(found)}, not of {same(new)}; give another file", None
    return None, found


def _compared(given: argparse.Namespace, found: Comparison, until: float) -> list[str] | None:
    """Operators that are not finished; None where nothing can be measured."""
    tuners, names = given.tuners.split(","), given.operators.split(",")
    left = list(names)
    try:
        with _times(given, found, until) as times:
            for operator in (one for one in OPERATORS if one.name in names):
                if time.monotonic() > until:
                    break
                began = time.monotonic()
                with contextlib.suppress(OutOfTime):
                    _one(operator, given, found, tuners, times, until)
                    left.remove(operator.name)
                write(found, given.json)
                said = "" if operator.name not in left else ", not finished"
                print(f"{operator.name}: {time.monotonic() - began:.0f} s{said}", file=sys.stderr, flush=True)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return None
    return left


def _one(
    operator: Operator,
    given: argparse.Namespace,
    found: Comparison,
    tuners: Sequence[str],
    times: Times,
    until: float,
) -> None:
    ready = prepared(operator, found.dtype, TARGETS[found.target], found.topologies)
    kept = found.operator(operator.name)
    if kept is None:
        kept = Compared(operator.name, operator.says, operator.flops)
        found.operators.append(kept)
    compare(ready, kept, tuners, given.seeds, found.trials, times, until)


@contextlib.contextmanager
def _times(given: argparse.Namespace, found: Comparison, until: float) -> Generator[Times]:
    """Raises process.Unavailable."""
    if given.by_estimate:
        yield Estimated()
        return
    with Measurer() as measurer, CompilePool() as pool, FloatTester("cuda") as tester:
        found.versions = dict(measurer.hello().versions)
        yield MeasuredTimes(measurer, pool, tester, lambda: write(found, given.json), until)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
