"""Mutants of the text of kernels, what is true of each, and what the check of the text says.

`python -m tests.trust.text_campaign [--json FILE] [--each N] [KERNELS]` runs many of them (minutes) and prints tables.
tests/trust/test_text_mutants.py runs a part in CI.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mugraph.triton_text.check import check_text
from mugraph.verification.float_test import FloatTester

from tests.trust.text_judge import Judge
from tests.trust.text_mutations import Mutant, mutants
from tests.trust.text_pool import Entry, entry, names

EACH = 4
"""Mutants of one kind of one kernel."""
SEED = 15
MEMORY = frozenset({"bounds", "order", "unwritten", "type", "values"})
"""Checks that say how a text uses memory and types, whatever comes of it."""


@dataclass(frozen=True)
class Outcome:
    """truth: by the judge. check: which check rejects it, "" where it is accepted"""

    kernel: str
    kind: str
    what: str
    truth: str
    error: float
    check: str
    reason: str

    @property
    def word(self) -> str:
        same = "equal" if self.truth == "equal" else "different"
        return f"{same}, {f'rejected ({self.check})' if self.check else 'accepted'}"


def chosen(name: str, each: int) -> Iterator[Mutant]:
    for kind, found in mutants(entry(name).source.standalone()).items():
        rng = random.Random(f"{SEED}/{name}/{kind}")
        yield from rng.sample(found, min(each, len(found)))


def checked(one: Entry, text: str) -> tuple[str, str]:
    """The check that rejects it, and the reason."""
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (one.source.inputs, one.source.outputs))
    found = check_text(one.program, text, one.launcher, inputs, outputs, seed=SEED)
    return ("", "") if found.passed else (found.check, found.reason or "")


def float_tested(one: Entry, text: str, tester: FloatTester) -> tuple[str, str]:
    """What the next step of verification says of a text that this one accepts."""
    body = text.split("@triton.jit", 1)
    source = replace(one.source, jit=f"@triton.jit{body[1]}", launcher="")
    found = tester.test_kernel(source, one.program)
    return ("", "") if found.passed else ("float test", found.reason or "")


def outcome(name: str, mutant: Mutant, judge: Judge, tester: FloatTester) -> Outcome:
    one = entry(name)
    judge.ask(name, mutant.text)
    check, reason = checked(one, mutant.text)
    truth, error = judge.answer()
    if not check and truth != "equal":
        check, reason = float_tested(one, mutant.text, tester)
    return Outcome(name, mutant.kind, mutant.what, truth, error, check, reason)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--each", type=int, default=EACH)
    arguments = parser.parse_args()
    judge, tester = Judge(), FloatTester()
    found: list[Outcome] = []
    try:
        for name in arguments.kernels or names():
            for mutant in chosen(name, arguments.each):
                found.append(outcome(name, mutant, judge, tester))
            print(f"{name}: {len(found)}", file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    finally:
        judge.close()
        tester.close()
    _tables(found)


def _tables(found: list[Outcome]) -> None:
    kinds = sorted({one.kind for one in found})
    words = sorted({one.word for one in found})
    print(f"{len(found)} mutants of {len({one.kernel for one in found})} kernels")
    for word in words:
        own = Counter(one.kind for one in found if one.word == word)
        print(f"{sum(own.values()):6} {word:36} " + ", ".join(f"{kind} {own[kind]}" for kind in kinds if own[kind]))
    for one in found:
        same = one.truth == "equal"
        if (not same and not one.check) or (same and one.check and one.check not in MEMORY):
            print(f"  {one.word}: {one.kernel}: {one.kind}: {one.what}: {one.truth} {one.error:.1e}: {one.reason}")


if __name__ == "__main__":
    main()
