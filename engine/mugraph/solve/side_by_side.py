"""Who solves the search units of a file: other processes; where something is measured, they search and this one does
the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from mugraph.solve.in_turn import InTurn
from mugraph.solve.together import Together, Units, together
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import Found


@contextlib.contextmanager
def side_by_side(tools: Tools) -> Generator[Units | None]:
    """None where each is solved when its region asks. Processes that still work at the end are ended."""
    if tools.units is None or tools.measurer is None:
        with together(tools.units, tools.file_time) as units:
            yield units
        return
    workers = tools.units.workers
    searches = Together[Found](tools.units, workers, tools.file_time, ahead=workers)
    try:
        yield InTurn(searches, tools)
    finally:
        searches.stop()
