"""The evidence that kernels are right, as a person reads it: a sentence for each check, or a few for many kernels."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.verification.verdict import Verdict


def evidence(verdict: Verdict) -> list[str]:
    """One sentence for each check that was made, and for each that was not."""
    if not verdict.passed:
        return [f"NOT VERIFIED: {verdict.reason}"]
    found = [f"{_equal(verdict)} ({verdict.bound_words})", f"schedule: {verdict.schedule_words}"]
    if verdict.lowering is not None:
        found.append(verdict.lowering.words)
    if verdict.proof is not None:
        found.append(verdict.proof.words)
    if verdict.text is not None:
        found.append(f"the kernels' text: {verdict.text}")
    if verdict.ranges_words is not None:
        found.append(verdict.ranges_words)
    return [*found, *_of_floats(verdict)]


def evidence_of_text(verdict: Verdict) -> list[str]:
    """The same, of a text that came without a graph."""
    if not verdict.passed:
        return [f"NOT VERIFIED: {verdict.reason}"]
    bound = f"no bound on accepting a wrong text ({verdict.bound_note})"
    if verdict.bound is not None:
        bound = (
            f"a wrong text passes with probability at most {verdict.bound:.1e} ({verdict.bound_note}), at these sizes"
        )
    calls = [verdict.lowering.words] if verdict.lowering is not None else []
    return [f"{_equal(verdict)}: {verdict.text}", bound, *calls, *_of_floats(verdict, reduced=False)]


def _equal(verdict: Verdict) -> str:
    sizes = "; ".join(", ".join(f"{a}={n}" for a, n in point.items()) for point in verdict.sizes)
    tests = f"{verdict.repetitions} random test{'' if verdict.repetitions == 1 else 's'}"
    return f"equal over finite fields in {tests} at {sizes}"


def _of_floats(verdict: Verdict, *, reduced: bool = True) -> list[str]:
    """reduced: the interpreter ran it at smaller sizes than the program's"""
    if verdict.max_rel_error is None:
        return ["no floating-point test was run"]
    found = [_error(verdict, verdict.max_rel_error, reduced=reduced)]
    if verdict.ulps_words is not None:
        found.append(verdict.ulps_words)
    if verdict.same_bits is not None:
        found.append(verdict.same_bits.words)
    return found


def _error(verdict: Verdict, error: float, *, reduced: bool = True) -> str:
    where = verdict.float_device or "the interpreter"
    at = " at reduced sizes" if where == "interpreter" and reduced else ""
    several = "; ".join(f"{axis}={', '.join(map(str, n))}" for axis, n in verdict.dynamic_sizes.items())
    at += f" ({several})" if several else ""
    eager = (
        "" if verdict.eager_rel_error is None else f"; PyTorch's own in this precision: {verdict.eager_rel_error:.1e}"
    )
    where = "Triton's interpreter" if where == "interpreter" else where
    kept = (
        " (from the store: a test of the run that found it; the rest was run again)" if verdict.float_from_store else ""
    )
    return f"error against float64 {error:.1e} in {where}{at}{eager}{kept}"


def evidence_of_all(verdicts: Sequence[Verdict]) -> list[str]:
    """A few sentences for the kernels of a region: what was found of all of them, the largest error, what was not
    tested of some."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        return [f"NOT VERIFIED: {verdict.reason}" for verdict in failed]
    if not verdicts:
        return []
    count = len(verdicts)
    tests = min(verdict.repetitions for verdict in verdicts)
    proved = sum(verdict.proof is not None and verdict.proof.proved for verdict in verdicts)
    texts = sum(verdict.text is not None for verdict in verdicts)
    floats = [(verdict.max_rel_error, verdict) for verdict in verdicts if verdict.max_rel_error is not None]
    equal = (
        f"equal in {tests} random tests over finite fields"
        if count == 1
        else (f"each of {count} parts equal in at least {tests} random tests over finite fields")
    )
    found = [f"{equal}; {_of(proved, count, 'proved for all real inputs at small sizes')}; {_texts(texts, count)}"]
    if len(floats) < count:
        found.append(f"no floating-point test was run{'' if not floats else f' of {count - len(floats)} of {count}'}")
    if floats:
        error, worst = max(floats, key=lambda one: one[0])
        found.append(f"{'' if count == 1 else 'the largest '}{_error(worst, error)}")
    return [*found, *dict.fromkeys(verdict.ranges_words for verdict in verdicts if verdict.ranges_words is not None)]


def _of(some: int, count: int, done: str) -> str:
    """ "proved", "3 of 5 proved", "not proved"."""
    if not some:
        return f"not {done}"
    return done if some == count else f"{some} of {count} {done}"


def _texts(some: int, count: int) -> str:
    if not some:
        return "the kernels' text was not run over the fields"
    return f"the kernels' text{'' if some == count else f' of {some} of {count}'} run over the fields as well"
