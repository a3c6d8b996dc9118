"""`mugraph doctor`: what is installed here, what does not fit, and what to do about it."""

from __future__ import annotations

from mugraph.commands.common import FAILED, OK, print_json
from mugraph.dependencies import installed
from mugraph.reports.findings import Finding, findings
from mugraph.version import __version__


def doctor(*, as_json: bool) -> int:
    """Exit status: 1 when something keeps mugraph from working; without a GPU it works and estimates."""
    found = _found()
    if as_json:
        print_json({"mugraph": __version__, "findings": [_document(f) for f in found]})
    elif installed("rich"):
        _print_table(found)
    else:
        _print(found)
    return FAILED if any(finding.state == "problem" for finding in found) else OK


def _found() -> list[Finding]:
    try:
        from mugraph.tune.device import detect
    except ModuleNotFoundError:  # it is among what is found
        return findings(None)
    return findings(detect())


def _print_table(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"mugraph {__version__}", title_justify="left", show_header=False, box=None)
    style = {"ok": "green", "note": "yellow", "problem": "bold red"}
    for finding in found:
        table.add_row(f"[{style[finding.state]}]{finding.state}[/]", finding.what, escape(finding.found))
        if finding.advice:
            table.add_row("", "", f"-> {escape(finding.advice)}")
    Console().print(table)


def _print(found: list[Finding]) -> None:
    print(f"mugraph {__version__}")
    for finding in found:
        print(f"{finding.state:<8} {finding.what}: {finding.found}")
        if finding.advice:
            print(f"{'':<8} -> {finding.advice}")


def _document(finding: Finding) -> dict[str, str | None]:
    return {"what": finding.what, "found": finding.found, "state": finding.state, "advice": finding.advice}
