"""`mugraph.verify(kernel, fn, *example_inputs)`: kernels that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mugraph.edit import in_memory
from mugraph.nested import is_nested
from mugraph.solve.beside import beside
from mugraph.solve.foreign import verify_kernel
from mugraph.trace.tracer import trace_file
from mugraph.verification.float_test import FloatTester


@dataclass(frozen=True)
class Verified:
    """What was found of a kernel. It is true where the kernel is the same function.

    reason: why it is not, or what of it cannot be read. where: kernel, tile, tensor, element and line, where known
    max_rel_error: of the float test, in Triton's interpreter; None where none was run
    bound: on the chance that a wrong kernel passes (Theorem 2 of Mirage), at these shapes; None where none is earned
    """

    passed: bool
    reason: str | None
    where: Mapping[str, object] | None
    max_rel_error: float | None
    bound: float | None = None

    def __bool__(self) -> bool:
        return self.passed


def verify(kernel: Callable[..., object], reference: Callable[..., object], *example_inputs: object) -> Verified:
    """Is `kernel`, a function that launches Triton kernels, the same function as `reference` (a function or an
    nn.Module) at the shapes of the example inputs? Its text is read; it is run in a process of its own.

    Raises TypeError for something without Python source, ValueError where `reference` cannot be traced.
    """
    launcher, found = in_memory.Origin.of(kernel), in_memory.Origin.of(reference)
    if launcher.function is not kernel and not launcher.is_decorated:
        reason = f"{launcher.qualname} is wrapped by another function: what is called is not what its text says"
        return Verified(False, reason, None, None)
    if is_nested(found.qualname):
        return Verified(False, "not verified: this run only looks at the file's functions", None, None)
    shapes = in_memory.described(found, example_inputs)
    trace = trace_file(found.path, qualname=found.qualname, source=found.traceable(), recorded_shapes=shapes)
    whole = beside(trace, found.qualname)
    if isinstance(whole, str):
        raise ValueError(whole)
    with FloatTester() as tester:
        result = verify_kernel(whole, launcher.text, launcher.qualname, tester=tester)
    verdict = result.verdict
    return Verified(verdict.passed, verdict.reason, result.where, verdict.max_rel_error, verdict.bound)
