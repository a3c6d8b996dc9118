"""`mugraph verify --kernel KERNELS.py:LAUNCHER PATH:QUALNAME`: is this Triton kernel the same function as that code?"""

from __future__ import annotations

from rich.console import Console

from mugraph.commands.common import FAILED, OK, Where, WrongUsage, print_json, say_error
from mugraph.commands.verify import graph_document, traced_reference
from mugraph.reports.evidence import evidence_of_text
from mugraph.solve.foreign import KernelVerdict, verify_kernel
from mugraph.verification.float_test import FloatTester


def verify(place: Where, kernel: Where, *, as_json: bool, seed: int | None = None) -> int:
    """Exit status: 0 if it is the same function, 1 if it is not or cannot be read. seed: repeats an earlier run. Raises
    WrongUsage."""
    if kernel.qualname is None:
        raise WrongUsage(f"name the launcher: --kernel {kernel.path}:LAUNCHER")
    try:
        text = kernel.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{kernel.path} cannot be read: {error}") from None
    reference = traced_reference(place)
    if isinstance(reference, str):
        say_error(reference)
        return FAILED
    with FloatTester() as tester:
        found = verify_kernel(reference, text, kernel.qualname, tester=tester, seed=seed)
    if as_json:
        document = graph_document(0, found.verdict)
        print_json({"graphs": [{**document, "bound_note": found.verdict.bound_note, "where": found.where}]})
    else:
        _report(kernel.qualname, found)
    return OK if found.verdict.passed else FAILED


def _report(name: str, found: KernelVerdict) -> None:
    console = Console()
    verdict = found.verdict
    state = "[bold green]the same function[/]" if verdict.passed else "[bold red]NOT VERIFIED[/]"
    console.print(f"{name}  {state}")
    for sentence in [*evidence_of_text(verdict), *([found.float_note] if found.float_note else [])]:
        console.print(f"   {sentence}", markup=False, highlight=False)
    if verdict.seed is not None:
        console.print(f"   random inputs of seed {verdict.seed}: --seed {verdict.seed} repeats them", highlight=False)
