"""Words about a result, for a search unit that differs from its own only in names."""

from __future__ import annotations

import re
from dataclasses import replace

from mugraph.ir.transforms.renaming import Renaming
from mugraph.verification.verdict import Verdict

_AXIS_IN_WORDS = re.compile(r"\b\w+(?=/\d)|(?<=\bfor )\w+(?=:)")
_NAME_IN_REASON = re.compile(r"(?:(?<=^)|(?<=: ))\w+(?= )")


def renamed_verdict(verdict: Verdict, names: Renaming) -> Verdict:
    sizes = tuple({names.axis(axis): size for axis, size in one.items()} for one in verdict.sizes)
    proof = verdict.proof
    if proof is not None:
        proof = replace(proof, sizes={names.axis(axis): size for axis, size in proof.sizes.items()})
    return replace(
        verdict,
        sizes=sizes,
        float_sizes={names.axis(axis): size for axis, size in verdict.float_sizes.items()},
        dynamic_sizes={names.axis(axis): tested for axis, tested in verdict.dynamic_sizes.items()},
        proof=proof,
        proved_sizes={names.axis(axis): ends for axis, ends in verdict.proved_sizes.items()},
        below=tuple(renamed_verdict(one, names) for one in verdict.below),
    )


def renamed_words(words: str, names: Renaming) -> str:
    """The words of a candidate (events.Considered) with its axes renamed: those before a slash and after `for`."""
    return _AXIS_IN_WORDS.sub(lambda found: names.axis(found[0]), words)


def renamed_reason(reason: str, names: Renaming) -> str:
    """The reason why there is no result, with the name that it may begin with renamed."""
    known = {**names.values, **names.tensors}
    return _NAME_IN_REASON.sub(lambda found: known.get(found[0], found[0]), reason)
