"""A search unit's result as the JSON document that the store keeps, and the result made again from it.

The document has what took time to find: the candidate, its verdict, its times. The kernel's text is generated again. It
is the same text, because the key holds the version of this package.

Anything may have written to the file that a store is. So a candidate from it is verified again before it is used. What
takes longest is not repeated. The float test's result is kept with a mark of the candidate it belongs to. That the
kernel's text was run over the fields is kept with a digest of the text, of the program, and of this package's source:
a candidate that was changed makes another text, which is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

import msgspec

from mugraph.codegen.by_size import by_size
from mugraph.events import Considered, SearchReport, Solution, UnitResult
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.content import digest
from mugraph.ir.json import candidate_from_json, candidate_to_json, schedule_from_json, schedule_to_json
from mugraph.ir.kernel import KernelSource, Rejected, UpTo
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.renaming import Renaming
from mugraph.memory.said import renamed_reason, renamed_verdict, renamed_words
from mugraph.optimizer.nodes import node_of, scheduled
from mugraph.sizes.indexed import indexed
from mugraph.sizes.same_bits import same_bits_again
from mugraph.sizes.table import Kernels, SizeTable
from mugraph.sizes.text import text_checked
from mugraph.sizes.up_to import program_up_to_size, up_to_name
from mugraph.store.keys import code_digest
from mugraph.targets import Target
from mugraph.verification.document import proof_of
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topologies


class NotRight(Exception):
    """What is stored is not the program, or not what was tested; the message says why."""


def remember(result: UnitResult, names: Renaming) -> Mapping[str, object]:
    """The document, with the names that `names` gives. JSON has no infinity: a time that is infinite is not known, so
    None."""
    document: dict[str, object] = {
        "reason": result.reason and renamed_reason(result.reason, names),
        "search": msgspec.to_builtins(result.search),
        "rejected": {renamed_reason(reason, names): count for reason, count in result.rejected.items()},
        "considered": [msgspec.to_builtins(_said(one, names)) for one in result.considered],
    }
    if result.solution is not None:
        solution = result.solution
        candidate: Candidate | None = None
        for kernel in reversed(solution.kernels):
            candidate = Candidate(*scheduled(kernel), solution.estimate_us, candidate)
        assert candidate is not None
        document["candidate"] = candidate_to_json(names.candidate(candidate))
        document["verdict"] = msgspec.to_builtins(renamed_verdict(solution.verdict, names))
        document["library_us"] = solution.library_us
        document["measured_us"] = solution.measured_us
        document["plain_us"] = solution.plain_us
        document["pays_smaller"] = solution.pays_smaller
        document["tested"] = solution.tested
        document["launches"] = _launches(solution.source, names)
        document["smaller"] = _smaller(solution.source, names)
        if solution.verdict.text:
            document["text"] = _text_digest(result.unit, solution.source)
        document["mark"] = _mark(document)
    return document


def recall(
    document: Mapping[str, object], unit: SearchUnit, name: str, target: Target, names: Renaming, *, again: bool = True
) -> UnitResult | None:
    """The result that the document was made of, with the kernel called `name` and everything else named as in the unit;
    None if it cannot be read.

    names: from the unit's own to those of the document
    again: verify the candidate. Documents from a file need it. Raises NotRight for one that is wrong or cannot be read.
    """
    own = names.inverse
    try:
        search = msgspec.convert(document["search"], SearchReport)
        reason = msgspec.convert(document["reason"], str | None)
        reason = reason and renamed_reason(reason, own)
        rejected = {
            renamed_reason(why, own): count
            for why, count in msgspec.convert(document["rejected"], dict[str, int]).items()
        }
        considered = tuple(_said(one, own) for one in msgspec.convert(document["considered"], tuple[Considered, ...]))
        if "candidate" not in document:
            return UnitResult(unit, None, search, reason, rejected, True, name, considered)
        if again and document["mark"] != _mark(document):
            raise NotRight("it is not what was tested: it was changed after it had been stored")
        candidate = own.candidate(candidate_from_json(document["candidate"]))
        verdict = renamed_verdict(msgspec.convert(document["verdict"], Verdict), own)
        library_us = msgspec.convert(document["library_us"], float)
        measured_us = msgspec.convert(document["measured_us"], float | None)
        plain_us = msgspec.convert(document["plain_us"], float | None)
        pays_smaller = msgspec.convert(document["pays_smaller"], bool)
        tested = msgspec.convert(document["tested"], bool)
        blocks = [_named(kernel.block, candidate.block.name, name) for kernel in candidate.kernels]
        schedules = [kernel.schedule for kernel in candidate.kernels]
        outputs = [tensor.name for tensor in unit.program.outputs.values()]
        kernels = list(zip(blocks, schedules, strict=True))
        table = SizeTable(unit.program, target, outputs)
        source = _source(table, kernels, document["launches"], own)
        source = by_size(source, smaller_of(table, document["smaller"], own, name))
        kernel, *then = (node_of(block, schedule) for block, schedule in zip(blocks, schedules, strict=True))
    except (KeyError, ValueError, ArithmeticError, msgspec.ValidationError, Rejected) as error:
        if again:
            raise NotRight(f"it cannot be read ({error})") from error
        return None
    if again and not tested:  # it is shown, and nothing more
        verdict = _verified_topology(unit, kernels, verdict)
    elif again:
        verdict = _verified(unit, kernels, source, verdict, document.get("text"))
    else:
        verdict = replace(verdict, same_bits=same_bits_again(unit, source, verdict.same_bits))
    solution = Solution(
        kernel,
        source,
        verdict,
        candidate.estimate_us,
        library_us,
        measured_us,
        plain_us,
        tuple(then),
        pays_smaller,
        tested,
    )
    return UnitResult(unit, solution, search, reason, rejected, True, name, considered)


def _verified(
    unit: SearchUnit,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    source: KernelSource,
    stored: Verdict,
    text_digest: object,
) -> Verdict:
    """The verdict of this run, with the float test of the run that found the candidate. Raises NotRight.

    text_digest: of the text that was run over the fields then
    """
    verdict = _verified_topology(unit, kernels, stored)
    if len(stored.below) != len(source.smaller):
        raise NotRight("it does not say how kernels for smaller sizes were tested")
    below: list[Verdict] = []
    for one, verdict_below in zip(source.smaller, stored.below, strict=True):
        small = program_up_to_size(unit.program, one.axis, one.largest)
        if small is None:
            raise NotRight(f"no kernels can be for sizes up to {one.axis} = {one.largest}")
        below.append(_verified_topology(replace(unit, program=small), one.kernels, verdict_below))
    right = indexed(unit.program, kernels, source)
    if not right.passed:
        raise NotRight(right.reason or "its tiles are wrong")
    ran = stored
    if not ran.text or text_digest != _text_digest(unit, source):
        ran = text_checked(unit.program, source, kernels)
        if not ran.passed:
            raise NotRight(ran.reason or "its text is wrong")
    return replace(
        verdict,
        indexing=right.indexing,
        text=ran.text,
        proved_sizes=ran.proved_sizes,
        proved_claims=ran.proved_claims,
        proof=proof_of(unit.program, kernels),
        float_from_store=stored.max_rel_error is not None,
        same_bits=same_bits_again(unit, source, stored.same_bits),
        below=tuple(replace(one, float_from_store=one.max_rel_error is not None) for one in below),
    )


def _verified_topology(unit: SearchUnit, kernels: Sequence[tuple[BlockGraph, Schedule]], stored: Verdict) -> Verdict:
    """What is stored, with the tests of the topology as they are of this run. Raises NotRight."""
    if not stored.passed:
        raise NotRight(f"its verdict is that it is wrong: {stored.reason}")
    verdict = verify_topologies(unit.program, [(block, None) for block, _ in kernels], stored.seed)
    if not verdict.passed:
        raise NotRight(verdict.reason or "it is another function")
    return replace(
        stored,
        lax=verdict.lax,
        repetitions=verdict.repetitions,
        sizes=verdict.sizes,
        bound=verdict.bound,
        bound_note=verdict.bound_note,
    )


def _text_digest(unit: SearchUnit, source: KernelSource) -> str:
    """Of all that the check of the text depends on."""
    names = [tensor.name for tensor in (*source.inputs, *source.outputs)]
    return digest("text", unit.program, source.standalone(), names, _sizes(source), code_digest())


def _sizes(source: KernelSource) -> list[list[int]]:
    """Up to which a kernel's schedules are used, or others than the kernels: at these it is checked."""
    return [*([row.largest for row in part.launches] for part in source.every), [one.largest for one in source.smaller]]


def _mark(document: Mapping[str, object]) -> str:
    """A mark by which a candidate and what was found out about it belong together."""
    said = [
        document["candidate"],
        document["verdict"],
        document["launches"],
        document["smaller"],
        document["measured_us"],
        document["tested"],
    ]
    return blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=16).hexdigest()


def _launches(source: KernelSource, names: Renaming) -> list[list[tuple[int, object]]]:
    """The launches of each kernel: up to which size each schedule is used. Measuring may have chosen them."""
    rows = [kernel.launches for kernel in source.kernels]
    return [[(row.largest, schedule_to_json(names.schedule(row.schedule))) for row in own] for own in rows]


def _source(table: SizeTable, kernels: Kernels, launches: object, own: Renaming) -> KernelSource:
    """Raises Rejected, ValueError and ValidationError for what cannot be read."""
    said = msgspec.convert(launches, list[list[tuple[int, object]]])
    rows = [[(largest, own.schedule(schedule_from_json(one))) for largest, one in chosen] for chosen in said]
    return table.with_schedules(kernels, rows)


def _smaller(source: KernelSource, names: Renaming) -> list[tuple[str, int, object, object]]:
    """What is launched up to a size in place of the kernels: axis, size, candidate, launches."""
    found: list[tuple[str, int, object, object]] = []
    for one in source.smaller:
        candidate: Candidate | None = None
        for block, schedule in reversed(one.kernels):
            candidate = Candidate(block, schedule, 0.0, candidate)
        assert candidate is not None
        said = candidate_to_json(names.candidate(candidate))
        found.append((names.axis(one.axis), one.largest, said, _launches(one.source, names)))
    return found


def smaller_of(table: SizeTable, document: object, own: Renaming, name: str) -> list[UpTo]:
    """Raises Rejected, ValueError and ValidationError for what cannot be read."""
    found: list[UpTo] = []
    for axis, largest, said, launches in msgspec.convert(document, list[tuple[str, int, object, object]]):
        candidate = own.candidate(candidate_from_json(said))
        old, new = candidate.block.name, up_to_name(name, largest)
        kernels = [(_named(kernel.block, old, new), kernel.schedule) for kernel in candidate.kernels]
        axis = own.axis(axis)
        one = program_up_to_size(table.program, axis, largest)
        if one is None:
            raise ValueError(f"no kernels can be for sizes up to {axis} = {largest}")
        source = _source(SizeTable(one, table.target, table.outputs), kernels, launches, own)
        found.append(UpTo(axis, largest, source, tuple(kernels)))
    return found


def _said(one: Considered, names: Renaming) -> Considered:
    return replace(one, words=renamed_words(one.words, names))


def _named(block: BlockGraph, old: str, new: str) -> BlockGraph:
    """A kernel that follows another one is named after it."""
    return replace(block, name=f"{new}{block.name.removeprefix(old)}")
