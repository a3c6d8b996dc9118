"""Mutants of every graph of the pool, what is true of each, and what the verifier says.

`python -m tests.trust.campaign [--json FILE] [--per-kind N] [PROGRAMS]` runs all of them (thousands; many minutes of
one core) and prints a table: kinds of mutation against outcomes. tests/trust/test_mutants.py runs a part in CI.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from mugraph.ir.json import FormatError, mugraph_from_json, program_from_json
from mugraph.ir.program import TensorProgram
from mugraph.verification.document import verify_document

from tests.trust.explanations import explanation
from tests.trust.judge import judge
from tests.trust.memory import Json
from tests.trust.mutations import MUTATIONS
from tests.trust.pool import Entry, entry, names

PER_KIND = 1
"""Mutants of one kind of one graph, in the whole campaign."""
MORE = {
    "mask": 4, "mask_ignored": 2, "window": 6, "accumulator": 2, "constant": 3, "library": 4, "function": 2,
    "strides": 2, "loops": 2, "tile": 2, "size": 2, "detour": 2, "thread_operators": 2,
}  # fmt: skip
"""Kinds that few graphs offer: so many times as many of each."""
SEED = 11


@dataclass(frozen=True)
class Case:
    """A mutant: of which program and graph, the kind of mutation, and which one of that kind."""

    program: str
    graph: int
    kind: str
    number: int

    @property
    def rng(self) -> random.Random:
        return random.Random(f"{SEED}/{self.program}/{self.graph}/{self.kind}")


@dataclass(frozen=True)
class Outcome:
    """truth: "" where the mutant is the program still; else how it is wrong (judge.py)
    verdict: "accepted", "rejected", or "raised" where the verifier fails by an exception
    """

    case: Case
    what: str
    truth: str
    truth_reason: str
    verdict: str
    reason: str
    seconds: float

    @property
    def name(self) -> str:
        """What became of it, in a word or two."""
        if self.verdict == "raised":
            return "raised"
        if self.truth == "tiles":
            return f"{self.verdict}, right with its own tiles alone"
        return f"{'wrong' if self.truth else 'right'}, {self.verdict}"


def cases(programs: Sequence[str] = (), per_kind: int = PER_KIND) -> Iterator[Case]:
    """Every mutant of the campaign, in an order that does not depend on anything but the pool."""
    for name in programs or names():
        for number, graph in enumerate(entry(name).graphs):
            for kind, mutation in MUTATIONS.items():
                probe = Case(name, number, kind, 0)
                count = sum(1 for _ in mutation(graph, probe.rng))
                chosen = probe.rng.sample(range(count), min(count, per_kind * MORE.get(kind, 1)))
                for which in sorted(chosen):
                    yield Case(name, number, kind, which)


def mutant(case: Case) -> tuple[str, Json]:
    """What was changed, and the graph."""
    graph = entry(case.program).graphs[case.graph]
    for number, (what, change) in enumerate(MUTATIONS[case.kind](graph, case.rng)):
        if number == case.number:
            changed = copy.deepcopy(graph)
            change(changed)
            return what, changed
    raise IndexError(f"there is no such mutant: {case}")


@cache
def program_of(name: str) -> TensorProgram:
    return program_from_json(entry(name).program)


def verdict_of(name: str, graph: Json) -> tuple[str, str]:
    """ "accepted", "rejected" or "raised", and why."""
    try:
        parsed = mugraph_from_json(graph)
    except FormatError as error:
        return "rejected", f"format: {error}"
    try:
        (verdict,) = verify_document(program_of(name), [parsed], seed=1)
    except Exception as error:  # that is what is counted
        return "raised", f"{type(error).__name__}: {error}"
    return ("accepted" if verdict.passed else "rejected"), verdict.reason or ""


def outcome(case: Case) -> Outcome | None:
    """None where the mutation changed nothing."""
    known: Entry = entry(case.program)
    what, changed = mutant(case)
    if changed == known.graphs[case.graph]:
        return None
    truth = judge(known, changed)
    began = time.perf_counter()
    verdict, reason = verdict_of(case.program, changed)
    return Outcome(case, what, truth.wrong, truth.reason, verdict, reason, time.perf_counter() - began)


def reason_class(reason: str) -> str:
    """A rejection's reason without names and numbers."""
    return re.sub(r"[\[\(].*?[\]\)]|'.*?'|\b\w*_\w*\b|\d+(\.\d+)?", "·", reason)[:110]


def table(found: Iterable[Outcome]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counts[one.case.kind][one.name] += 1
        counts["all"][one.name] += 1
    columns = sorted(counts["all"], key=lambda name: -counts["all"][name])
    lines = [f"{'kind':<24}" + "".join(f"{column[:22]:>24}" for column in columns)]
    for kind in [*sorted(counts.keys() - {"all"}), "all"]:
        lines.append(f"{kind:<24}" + "".join(f"{counts[kind][column]:>24}" for column in columns))
    return "\n".join(lines)


def details(found: Sequence[Outcome]) -> Iterator[str]:
    """Each class of what should not be, with one example."""
    for title, chosen in (
        ("accepted and wrong", [one for one in found if one.name == "wrong, accepted"]),
        ("raised", [one for one in found if one.verdict == "raised"]),
        ("rejected and right", [one for one in found if one.name == "right, rejected"]),
    ):
        groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for one in chosen:
            why = explanation(one.case.kind, one.reason) if title == "rejected and right" else ""
            groups["" if why else one.case.kind, why or reason_class(one.reason)].append(one)
        yield f"\n{title}: {len(chosen)}"
        for (kind, reason), ones in sorted(groups.items(), key=lambda item: -len(item[1])):
            first = ones[0]
            yield f"  {len(ones):>4} {kind} {reason}"
            yield f"       e.g. {first.case}: {first.what}; truth: {first.truth} {first.truth_reason[:160]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--json", type=Path, help="every outcome, a line of JSON each")
    parser.add_argument("--per-kind", type=int, default=PER_KIND)
    asked = parser.parse_args()
    began, found = time.process_time(), []
    chosen = list(cases(asked.programs, asked.per_kind))
    random.Random(SEED).shuffle(chosen)  # so that a part of a run says something of all
    with asked.json.open("w", encoding="utf-8") if asked.json else nullcontext() as lines:
        for number, case in enumerate(chosen):
            made = outcome(case)
            if made is not None:
                found.append(made)
                print(json.dumps(asdict(made)), file=lines, flush=True) if lines else None
            if number % 500 == 499:
                spent = time.process_time() - began
                print(f"{number + 1} of {len(chosen)}, {spent:.0f} s", file=sys.stderr, flush=True)
    print(table(found))
    print("\n".join(details(found)))
    print(f"\n{len(found)} mutants of {len({one.case.program for one in found})} programs, "
          f"{time.process_time() - began:.0f} s of processor time")  # fmt: skip
    sys.exit(any(one.name in ("wrong, accepted", "raised") for one in found))


if __name__ == "__main__":
    main()
