"""Rewrites of right programs and graphs, confirmed by the interpreter, and what the verifier says of them.

`python -m tests.trust.rewriting [--per-kind N]` prints the table: kinds of rewrite against outcomes, and each
rejection's reason. tests/trust/test_rewrites.py is the same in CI.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.trust.campaign import reason_class, verdict_of
from tests.trust.judge import Truth, judge
from tests.trust.memory import Json
from tests.trust.pool import entry, names
from tests.trust.rewrites import REWRITES

PER_KIND = 9
SEED = 5


@dataclass(frozen=True)
class Rewrite:
    """truth: of the interpreter; verdict and reason: of the verifier"""

    program: str
    graph: int
    kind: str
    what: str
    truth: Truth
    verdict: str
    reason: str


def rewritten(kind: str, most: int) -> Iterator[tuple[str, int, str, Json]]:
    """Program, number of the graph, what was rewritten, and the graph: at most so many, one a program as far as that
    goes."""
    rng = random.Random(f"{SEED}/{kind}")
    queues: list[list[tuple[str, int, int]]] = []
    for name in names():
        sites = [
            (name, number, at)
            for number, graph in enumerate(entry(name).graphs)
            for at, _ in enumerate(REWRITES[kind](graph, random.Random(f"{SEED}/{name}/{number}")))
        ]
        rng.shuffle(sites)
        queues.append(sites)
    rng.shuffle(queues)
    turns = [queue[turn] for turn in range(max(map(len, queues))) for queue in queues if turn < len(queue)]
    for name, number, at in turns[:most]:
        graph = entry(name).graphs[number]
        edits = list(REWRITES[kind](graph, random.Random(f"{SEED}/{name}/{number}")))
        what, change = edits[at]
        changed = copy.deepcopy(graph)
        change(changed)
        yield name, number, what, changed


def rewrites(per_kind: int = PER_KIND) -> Iterator[Rewrite]:
    """Those that the interpreter finds right, `per_kind` of each kind where there are as many."""
    for kind in REWRITES:
        right = 0
        for name, number, what, graph in rewritten(kind, 4 * per_kind):
            truth = judge(entry(name), graph)
            if truth.wrong:
                continue
            verdict, reason = verdict_of(name, graph)
            yield Rewrite(name, number, kind, what, truth, verdict, reason)
            right += 1
            if right == per_kind:
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-kind", type=int, default=PER_KIND)
    began = time.process_time()
    found = list(rewrites(parser.parse_args().per_kind))
    counts = Counter((one.kind, one.verdict) for one in found)
    for kind in REWRITES:
        said = ", ".join(f"{counts[kind, verdict]} {verdict}" for verdict in ("accepted", "rejected", "raised"))
        print(f"{kind:<24}{said}")
    for one in found:
        if one.verdict != "accepted":
            print(f"{one.kind}: {one.program} {one.graph}: {one.what}: {one.verdict}: {reason_class(one.reason)}")
    rejected = sum(one.verdict != "accepted" for one in found)
    print(f"{rejected} of {len(found)} right rewrites rejected, {time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
