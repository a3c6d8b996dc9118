"""`mugraph verify --ugraph FILE.json PATH:QUALNAME`: is each of these μGraphs the same function as that code?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.markup import escape

from mugraph.commands.common import FAILED, OK, Where, WrongUsage, print_json, say_error
from mugraph.ir.dtypes import DType
from mugraph.ir.json import FormatError, mugraph_from_json
from mugraph.ir.mirage import Unreadable, is_checkpoint, read_checkpoint
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Trace
from mugraph.reports.document import finite, lowering_document, proof_document, ulps_document
from mugraph.reports.evidence import evidence
from mugraph.solve.beside import Beside, beside, sole_unit
from mugraph.trace.tracer import trace_file
from mugraph.verification.document import verify_mugraph
from mugraph.verification.float_test import FloatTester
from mugraph.verification.lowering.check import check_lowering
from mugraph.verification.verdict import Lowering, Verdict


def verify(place: Where, ugraph: Path, *, as_json: bool, seed: int | None = None) -> int:
    """Exit status: 0 if all graphs are equivalent. seed: repeats an earlier run. Raises WrongUsage."""
    document = _read(ugraph)
    graphs = None if is_checkpoint(document) else _graphs(document, ugraph)
    with FloatTester() as tester:
        tester.begin()  # it imports PyTorch while the code is traced, in another process
        code = _traced(place, sole_unit)
        if isinstance(code, str):
            say_error(code)
            return FAILED
        program = code.program
        if graphs is None:  # a checkpoint does not say which 16 bits an element has: the program does
            graphs = read_checkpoint(document, _half(program))
        verdicts = [
            Verdict(False, graph.reason) if isinstance(graph, Unreadable) else verify_mugraph(program, graph, seed)
            for graph in graphs
        ]
        if any(verdict.passed for verdict in verdicts):
            lowering = check_lowering(code.unit, code.smaller, tester)
            verdicts = [with_lowering(verdict, lowering) for verdict in verdicts]
    if as_json:
        print_json({"graphs": [graph_document(i, verdict) for i, verdict in enumerate(verdicts)]})
    else:
        _report(graphs, verdicts)
    return OK if all(verdict.passed for verdict in verdicts) else FAILED


def with_lowering(verdict: Verdict, lowering: Lowering) -> Verdict:
    """Of a graph that is the same function as the code's program: it is that of the code only if the program is."""
    if not verdict.passed:
        return verdict
    passed = lowering.passed is not False
    return replace(verdict, passed=passed, reason=None if passed else lowering.words, lowering=lowering)


def traced_reference(place: Where) -> Beside | str:
    """The whole function, as a kernel stands beside it, or one sentence saying why there is none. Raises WrongUsage for
    a function that is not there."""
    return _traced(place, beside)


def _traced(place: Where, read: Callable[[Trace, str], Beside | str]) -> Beside | str:
    trace = trace_file(place.path, qualname=place.qualname)
    for notice in trace.notices:
        say_error(notice)
    found = read(trace, place.qualname or place.path.name)
    if isinstance(found, str) and place.qualname and f"named {place.qualname}" in found:
        raise WrongUsage(found)
    return found


def read_graphs(path: Path) -> list[MuGraph]:
    """One μGraph of ours, a list of them, or the document `mugraph optimize --json` prints. Raises WrongUsage."""
    return _graphs(_read(path), path)


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise WrongUsage(f"{path} is no JSON: {error}") from None
    except RecursionError:
        raise WrongUsage(f"{path} is nested too deeply to be read") from None


def _graphs(document: object, path: Path) -> list[MuGraph]:
    found = _listed(document)
    if not found:
        raise WrongUsage(f"{path} holds no μGraph")
    try:
        return [mugraph_from_json(one) for one in found]
    except FormatError as error:
        raise WrongUsage(f"{path} holds no μGraph that can be read: {error}") from None
    except RecursionError:
        raise WrongUsage(f"{path} is nested too deeply to be read") from None


def _half(program: TensorProgram) -> DType:
    """The program's element type of 16 bits."""
    return "bf16" if any(tensor.dtype == "bf16" for tensor in program.tensors) else "f16"


def _listed(document: object) -> list[object]:
    if isinstance(document, list):
        return cast("list[object]", document)
    regions = cast("dict[str, object]", document).get("regions") if isinstance(document, dict) else None
    if isinstance(regions, list):
        parts = [cast("dict[str, object]", one) for one in cast("list[object]", regions) if isinstance(one, dict)]
        return [part["mugraph"] for part in parts if part.get("mugraph")]
    return [document]


def graph_document(index: int, verdict: Verdict) -> dict[str, object]:
    """A verdict as JSON."""
    return {
        "index": index,
        "passed": verdict.passed,
        "reason": verdict.reason,
        "lax": verdict.lax,
        "repetitions": verdict.repetitions,
        "bound": verdict.bound,
        "proof": proof_document(verdict.proof),
        "lowering": lowering_document(verdict.lowering),
        "seed": verdict.seed,
        "max_rel_error": finite(verdict.max_rel_error),
        "ulps": ulps_document([verdict]),
    }


def _report(graphs: Sequence[MuGraph | Unreadable], verdicts: list[Verdict]) -> None:
    console = Console()
    for index, (graph, verdict) in enumerate(zip(graphs, verdicts, strict=True)):
        state = "[bold green]equivalent[/]" if verdict.passed else "[bold red]NOT EQUIVALENT[/]"
        console.print(f"{index}: {escape(graph.name)}  {state}")
        for sentence in evidence(verdict):
            console.print(f"   {sentence}", markup=False, highlight=False)
        if verdict.seed is not None:
            console.print(
                f"   random inputs of seed {verdict.seed}: --seed {verdict.seed} repeats them", highlight=False
            )
