"""`mugraph.optimize(fn, *example_inputs)`, and `mugraph.verify(kernel, fn, *example_inputs)`: the library's entries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from mugraph.events import FileResult
    from mugraph.protocol.settings import CompareWith

P = ParamSpec("P")
R = TypeVar("R")


class Optimized(Generic[P, R]):
    """Calls the generated kernels where they fit and the original everywhere else.

    result:   what was found for every region of the function
    results:  the same, and what was found in other files that a module's parts have their code in
    original: the function given
    """

    def __init__(
        self, original: Callable[P, R], replacement: Callable[P, R], result: FileResult, results: Sequence[FileResult]
    ) -> None:
        self.original = original
        self.result = result
        self.results = results
        self._replacement = replacement
        functools.update_wrapper(self, original)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._replacement(*args, **kwargs)


def optimize(
    fn: Callable[P, R],
    *example_inputs: object,
    target: str = "auto",
    budget: float = 20.0,
    file_budget: float = 45.0,
    compare_with: CompareWith = "both",
    **example_keywords: object,
) -> Optimized[P, R]:
    """Search for better kernels for `fn` (a function or an nn.Module) at the shapes of the example inputs.

    The source is not changed. What comes back is right for any inputs: the original runs where no kernel fits.

    A module may be a library's, and what it calls may be spread over classes and files: `optimize(model, ids)`. Where
    kernels are for more than its own `forward`, the code of those classes' methods is replaced for this process: other
    objects of theirs have the kernels too, where they fit. Called again with other inputs, it adds kernels. Where parts
    have their code in other files, the module is run once, on copies of the inputs, to see how they are called.

    target, budget, file_budget: as the command line takes them (seconds for each search, and for each file).
    compare_with: what a kernel must be faster than: "code" (as it runs), "best" (torch.compile and its max-autotune
    mode), or "both".
    Raises TypeError for something without Python source, ValueError where the source cannot be traced.
    """
    from torch.nn import Module

    from mugraph import pipeline
    from mugraph.edit import in_memory, in_place, inner_calls
    from mugraph.events import Done
    from mugraph.recording.runs import Runs
    from mugraph.store import Store

    found = in_memory.Origin.of(fn)
    if found.module is None and in_memory.is_plain_data((*example_inputs, *example_keywords.values())):
        runs = Runs(in_memory.described(found, example_inputs, example_keywords))
    else:
        runs = Runs(pictures=in_memory.pictured(found, example_inputs, example_keywords))
    options = pipeline.Options(target=target, budget_s=budget, file_budget_s=file_budget, compare_with=compare_with)

    def searched(origin: in_memory.Origin, qualname: str | None, runs: Runs) -> FileResult:
        taken, source = in_place.loaded_file(origin).taken, origin.traceable()
        events = pipeline.run(origin.path, qualname, options, source=source, runs=runs, store=store, taken=taken)
        result = next(event.result for event in events if isinstance(event, Done))
        asked = [region for region in result.regions if qualname is not None or region.status != "needs-shapes"]
        return replace(result, regions=tuple(asked))

    def put_in_place(origin: in_memory.Origin, result: FileResult) -> None:
        plans, sources, _ = pipeline.improved(result.regions)
        if plans:
            in_place.loaded_file(origin).replace(plans, sources, result.device.target)

    replacement = fn
    with Store.open() as store:
        result = searched(found, found.qualname, runs)
        if result.errors and not result.regions:
            raise ValueError(result.errors[0])
        results = [result]
        plans, sources, _ = pipeline.improved(result.regions)
        if plans and found.is_plain and all(plan.region.function == found.qualname for plan in plans):
            replacement = in_memory.replacement(fn, found, plans, sources, result.device.target)
        else:
            put_in_place(found, result)
        if isinstance(fn, Module):
            for origin, pictures in inner_calls.by_file(fn, found.path, example_inputs, example_keywords):
                reached = {name for one in results for region in one.regions for name in region.region.ran}
                left = {name: picture for name, (kind, picture) in pictures.items() if kind not in reached}
                if left:
                    results.append(searched(origin, None, Runs(pictures=left)))
                    put_in_place(origin, results[-1])
    return Optimized(fn, replacement, result, tuple(results))


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
    from mugraph.edit import in_memory
    from mugraph.solve.beside import beside
    from mugraph.solve.foreign import verify_kernel
    from mugraph.trace.tracer import trace_file
    from mugraph.verification.float_test import FloatTester

    launcher, found = in_memory.Origin.of(kernel), in_memory.Origin.of(reference)
    if launcher.function is not kernel and not launcher.is_decorated:
        reason = f"{launcher.qualname} is wrapped by another function: what is called is not what its text says"
        return Verified(False, reason, None, None)
    shapes = in_memory.described(found, example_inputs)
    trace = trace_file(found.path, qualname=found.qualname, source=found.traceable(), recorded_shapes=shapes)
    whole = beside(trace, found.qualname)
    if isinstance(whole, str):
        raise ValueError(whole)
    with FloatTester() as tester:
        result = verify_kernel(whole, launcher.text, launcher.qualname, tester=tester)
    verdict = result.verdict
    return Verified(verdict.passed, verdict.reason, result.where, verdict.max_rel_error, verdict.bound)
