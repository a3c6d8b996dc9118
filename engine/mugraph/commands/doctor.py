"""`mugraph doctor`: what is installed here, what does not fit, and what to do about it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from mugraph.commands.common import FAILED, OK, print_json
from mugraph.reports.findings import Finding, findings
from mugraph.tune.device import detect
from mugraph.version import __version__


def doctor(*, as_json: bool) -> int:
    """Exit status: 1 when something keeps mugraph from working; without a GPU it works and estimates."""
    found = findings(detect())
    if as_json:
        print_json({"mugraph": __version__, "findings": [_document(f) for f in found]})
    else:
        table = Table(title=f"mugraph {__version__}", title_justify="left", show_header=False, box=None)
        style = {"ok": "green", "note": "yellow", "problem": "bold red"}
        for finding in found:
            table.add_row(f"[{style[finding.state]}]{finding.state}[/]", finding.what, finding.found)
            if finding.advice:
                table.add_row("", "", f"-> {finding.advice}")
        Console().print(table)
    return FAILED if any(finding.state == "problem" for finding in found) else OK


def _document(finding: Finding) -> dict[str, str | None]:
    return {"what": finding.what, "found": finding.found, "state": finding.state, "advice": finding.advice}
