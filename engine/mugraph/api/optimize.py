"""`mugraph.optimize(fn, *example_inputs)`: a callable of the running program, with kernels where they were found."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, TypeVar

from rich.console import Console

from mugraph.api.over_files import OverFiles
from mugraph.edit import in_memory
from mugraph.events import FileResult, RegionResult
from mugraph.nested import is_nested
from mugraph.options import Options
from mugraph.protocol.settings import CompareWith
from mugraph.recording.runs import Runs
from mugraph.reports.progress import ProgressView
from mugraph.reports.text import print_report
from mugraph.tune.device import detect

P = ParamSpec("P")
R = TypeVar("R")
_WIDE = 120


class Optimized(Generic[P, R]):
    """Calls the generated kernels where they fit and the original everywhere else.

    result:   what was found for every region of the function
    results:  the same, and what was found in other files that a module's parts have their code in
    left_out: what was not searched and why, in sentences
    original: the function given
    """

    def __init__(
        self,
        original: Callable[P, R],
        replacement: Callable[P, R],
        results: Sequence[FileResult],
        left_out: Sequence[str] = (),
    ) -> None:
        self.original = original
        self.result = results[0]
        self.results = tuple(results)
        self.left_out = tuple(left_out)
        self._replacement = replacement
        functools.update_wrapper(self, original)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._replacement(*args, **kwargs)

    def __repr__(self) -> str:
        """ "<mugraph.Optimized Stack: kernels for 3 of 4 regions, 1.2x to 1.8x faster>"; times by a model are called
        estimates."""
        kind = type(self.original)
        name = getattr(self.original, "__qualname__", kind.__qualname__)
        return f"<mugraph.Optimized {name}: {self._words}>"

    def report(self, *, verbose: bool = False, kernels: bool = False) -> str:
        """What `mugraph optimize` prints of a file, of each. kernels: their text, too."""
        text = io.StringIO()
        console = Console(file=text, width=_WIDE, no_color=True)
        for result in self.results:
            for error in result.errors:
                console.print(error, markup=False, highlight=False, soft_wrap=True)
            print_report(result, console, verbose=verbose, kernels=kernels, offer=False)
        for sentence in self.left_out:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        return text.getvalue()

    @property
    def _words(self) -> str:
        regions = [region for result in self.results for region in result.regions]
        found = [region for region in regions if region.status == "improved"]
        if not found:
            return f"no kernel is offered for its {len(regions)} regions" if regions else "no region was found"
        what = f"kernels for {len(found)} of {len(regions)} region{'s' if len(regions) > 1 else ''}"
        return ", ".join([what, *_gains(found)])


def _gains(found: Sequence[RegionResult]) -> list[str]:
    """["1.2x to 1.8x faster (estimated)"]."""
    gains = sorted(one.timing.speedup for one in found if one.timing.speedup is not None)
    if not gains:
        return []
    least, most = f"{gains[0]:.2f}x", f"{gains[-1]:.2f}x"
    measured = all(one.timing.source == "measured" for one in found)
    return [f"{least if least == most else f'{least} to {most}'} faster{'' if measured else ' (estimated)'}"]


def optimize(
    fn: Callable[P, R],
    *example_inputs: object,
    target: str = "auto",
    budget: float = 20.0,
    file_budget: float = 45.0,
    compare_with: CompareWith = "both",
    progress: bool | None = None,
    **example_keywords: object,
) -> Optimized[P, R]:
    """Search for better kernels for `fn` (a function or an nn.Module) at the shapes of the example inputs.

    The source is not changed. What comes back is right for any inputs: the original runs where no kernel fits.

    A module may be a library's, and what it calls may be spread over classes and files: `optimize(model, ids)`. Where
    kernels are for more than its own `forward`, the code of those classes' methods is replaced for this process: other
    objects of theirs have the kernels too, where they fit. Called again with other inputs, it adds kernels. Where parts
    have their code in other files, the module is run twice, on copies of the inputs, to see how they are called and how
    long they take.

    target, budget: as the command line takes them (seconds for each search).
    file_budget: seconds for all files together. Processes start before, and the last comparison ends after.
    compare_with: what a kernel must be faster than: "code" (as it runs), "best" (torch.compile and its max-autotune
    mode), or "both".
    progress: on standard error; None: where that is a terminal or a notebook.
    Raises TypeError for something without Python source, ValueError where the source cannot be traced.
    """
    found = in_memory.Origin.of(fn, *example_inputs, *example_keywords.values())
    if is_nested(found.qualname):
        return Optimized(fn, fn, [FileResult(str(found.path), detect(), ())])
    if (
        found.module is None
        and not found.is_of_session
        and in_memory.is_plain_data((*example_inputs, *example_keywords.values()))
    ):
        runs = Runs(in_memory.described(found, example_inputs, example_keywords))
    else:
        runs = Runs(pictures=in_memory.pictured(found, example_inputs, example_keywords))
    options = Options(target=target, budget_s=budget, file_budget_s=file_budget, compare_with=compare_with)
    console = Console(stderr=True, quiet=progress is False)
    with ProgressView(console, verbose=progress is True and not console.is_terminal) as view:
        searched = OverFiles(options, view.show).search(fn, found, runs, example_inputs, example_keywords)
    made = Optimized(fn, searched.replacement, searched.results, searched.left_out)
    if progress or (progress is None and console.is_terminal):
        console.print(repr(made), markup=False, highlight=False, soft_wrap=True)
    return made
