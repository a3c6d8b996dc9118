"""Rewrites of right programs and graphs, confirmed by the interpreter, and what the verifier says of them.

Two sources: the forms of tests/trust/rewrites, each applied once to as many programs as it applies to, up to a number;
and the functions of rewritten.py, as they are traced.
`python -m tests.trust.rewriting [--programs N]` prints the table: kinds of rewrite against outcomes, and each
rejection's reason. tests/trust/test_rewrites.py is the same in CI.
"""

from __future__ import annotations

import argparse
import copy
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.trust.campaign import reason_class, verdict_of
from tests.trust.judge import judge
from tests.trust.memory import Json
from tests.trust.pool import entry, names
from tests.trust.pool import rewritten as functions
from tests.trust.rewrites import REWRITES

PROGRAMS = 8
"""That one form is applied to, at most."""
SITES = 4
"""Of one form in one program that are tried, at most, until one is right."""
SEED = 5


@dataclass(frozen=True)
class Rewrite:
    """verdict and reason: of the verifier"""

    program: str
    kind: str
    what: str
    verdict: str
    reason: str


def form_of(kind: str, what: str) -> str:
    """Which form of a kind a description speaks of: without the names of values, axes and kernels."""
    if ", " in what:
        return what.rpartition(", ")[2]
    return re.sub(r"\b(axis|over|kernel) \w+", r"\1", what)


def _edits(kind: str, name: str, number: int) -> list[tuple[str, object]]:
    return list(REWRITES[kind](entry(name).graphs[number], random.Random(f"{SEED}/{name}/{number}")))


@cache
def sites(kind: str) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Form -> program -> (graph, number of the edit), shuffled."""
    found: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for name in names():
        for number in range(len(entry(name).graphs)):
            for at, (what, _) in enumerate(_edits(kind, name, number)):
                found[form_of(kind, what)][name].append((number, at))
    rng = random.Random(f"{SEED}/{kind}")
    for programs in found.values():
        for every in programs.values():
            rng.shuffle(every)
    return found


def of_kind(kind: str, programs: int = PROGRAMS) -> Iterator[Rewrite]:
    """Of each form and program the first site where it is right."""
    for form, places in sites(kind).items():
        chosen = sorted(places)
        random.Random(f"{SEED}/{kind}/{form}").shuffle(chosen)
        right = 0
        for name in chosen:
            for number, at in places[name][:SITES]:
                what, change = _edits(kind, name, number)[at]
                graph: Json = copy.deepcopy(entry(name).graphs[number])
                change(graph)  # type: ignore[operator]
                if judge(entry(name), graph).wrong:
                    continue
                yield Rewrite(name, kind, f"graph {number}: {what}", *verdict_of(name, graph))
                right += 1
                break
            if right == programs:
                break


def of_functions() -> Iterator[Rewrite]:
    """Raises ValueError where a function is not what it should be."""
    for name, graph in functions().items():
        program, _, how = name.partition("__")
        truth = judge(entry(program), graph)
        if truth.wrong:
            raise ValueError(f"{name} is another function: {truth.reason}")
        yield Rewrite(program, "rewritten source", how, *verdict_of(program, graph))


def rewrites(programs: int = PROGRAMS) -> Iterator[Rewrite]:
    for kind in REWRITES:
        yield from of_kind(kind, programs)
    yield from of_functions()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    began = time.process_time()
    found = list(rewrites(parser.parse_args().programs))
    counts = Counter((one.kind, one.verdict) for one in found)
    for kind in dict.fromkeys(one.kind for one in found):
        said = ", ".join(f"{counts[kind, verdict]} {verdict}" for verdict in ("accepted", "rejected", "raised"))
        print(f"{kind:<24}{said}")
    for one in found:
        if one.verdict != "accepted":
            print(f"{one.kind}: {one.program}: {one.what}: {one.verdict}: {reason_class(one.reason)}")
    rejected = sum(one.verdict != "accepted" for one in found)
    spent = time.process_time() - began
    share = f"{rejected} of {len(found)} right rewrites rejected ({rejected / len(found):.1%})"
    print(f"{share}, {spent:.0f} s of processor time")


if __name__ == "__main__":
    main()
