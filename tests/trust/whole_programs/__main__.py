"""Random files of ordinary PyTorch: each is optimised, edited, called in many ways beside its original, and taken back.

`python -m tests.trust.whole_programs --count N --seed S [--jobs J] [--shrink] [--keep FOLDER]`: prints what failed, and
a table. `--file PATH` tries one file. tests/trust/test_whole_programs.py runs a part in CI.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.support.forks import forked, interpreting_server, tracing_server
from tests.trust.whole_programs.files import drawn
from tests.trust.whole_programs.shrink import shrunk
from tests.trust.whole_programs.way import Outcome, outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="of the seeds, one in so many")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the files that fail")
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.jobs > 1:
        sys.exit(_side_by_side(given.jobs))
    texts = [(given.file.stem, given.file.read_text())] if given.file else None
    seeds = range(given.seed, given.seed + given.count, given.every)
    with (
        closing(tracing_server()) as tracing,
        closing(interpreting_server()) as interpreting,
        forked(tracing, interpreting),
        tempfile.TemporaryDirectory() as folder,
    ):
        _campaign(texts or ((str(seed), drawn(seed)) for seed in seeds), Path(folder), given)


def _campaign(texts: Iterable[tuple[str, str]], folder: Path, given: argparse.Namespace) -> None:
    total, kinds = Counter[str](), Counter[str]()
    for name, text in texts:
        made = outcome(text, folder)
        total.update(
            files=1,
            edited=bool(made.regions),
            regions=made.found,
            kernels=made.regions,
            calls=made.calls,
            lenient=made.lenient,
        )
        kinds[made.kind or "right"] += 1
        if not made.kind:
            continue
        print(f"== {name}: {made.kind}")
        _told(made)
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            (given.keep / f"{made.kind}_{name}.py").write_text(text)
        if given.shrink:
            small = shrunk(text, made, folder)
            print(small)
            if given.keep:
                (given.keep / f"{made.kind}_{name}_small.py").write_text(small)
        sys.stdout.flush()
    print(f"TOTAL {dict(total)} {dict(kinds)}")


def _told(made: Outcome) -> None:
    for line in (
        *made.wrong[:6],
        *made.failed[:3],
        *(f"no call taken: {one}" for one in made.idle),
        made.error[-1500:],
    ):
        if line:
            print(f"   {line}")


def _side_by_side(jobs: int) -> int:
    """The same command so many times, each with its share of the seeds."""
    given = sys.argv[1:]
    at = given.index("--jobs")
    del given[at : at + 2]
    first = int(given[given.index("--seed") + 1]) if "--seed" in given else 0
    count = int(given[given.index("--count") + 1]) if "--count" in given else 100
    started: list[subprocess.Popen[bytes]] = []
    for number in range(jobs):
        own = [*given, "--seed", str(first + number), "--count", str(count - number), "--every", str(jobs)]
        started.append(subprocess.Popen([sys.executable, "-m", "tests.trust.whole_programs", *own]))
    return max(one.wait() for one in started)


if __name__ == "__main__":
    main()
