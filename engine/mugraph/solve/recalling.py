"""The result of a search unit that was solved before: in this run, or in one whose results the store has kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mugraph.events import UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.renaming import Renaming, canonical
from mugraph.log import note
from mugraph.memory.units import NotRight, recall, remember
from mugraph.options import Bounds
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.store.keys import region_key
from mugraph.tune.device import Device
from mugraph.verification.lowering.check import mark_of


@dataclass(frozen=True)
class Memory:
    """What was solved before. path: of the user's file."""

    tools: Tools
    device: Device
    store: Store | None
    path: Path

    def recalled(self, unit: SearchUnit, place: Place, key: str, names: Renaming) -> UnitResult | None:
        """From this run, else from the store; None where there is nothing, or nothing that is right."""
        solved = self.tools.solved
        if key in solved:
            known = recall(solved[key], unit, place.name, self.tools.target, names, again=False)
            if known is not None:  # it has cost nothing here
                return replace(known, from_store=False, search=replace(known.search, total_s=0.0))
        known = self._from_store(unit, place, key, names)
        if known is not None:
            solved[key] = remember(known, names)
        return known

    def has(self, key: str) -> bool:
        """Whether there is anything under the key."""
        return key in self.tools.solved or (self.store is not None and self.store.get(key) is not None)

    def keep(self, found: UnitResult, key: str, *, lasting: bool = True) -> None:
        """lasting: for other runs as well, as what was searched for all the seconds that were asked for"""
        # The names of the unit that was solved: who asked for it may have the same program under others.
        _, names = canonical(found.unit.program)
        self.tools.solved[key] = document = remember(found, names)
        if self.store is not None and lasting:
            self.store.put(key, document)

    def key(self, unit: SearchUnit, bounds: Bounds, ranges: str | None) -> tuple[str, Renaming]:
        """What the unit is kept under, and from its names to those it is kept with. ranges: those of its region"""
        program, names = canonical(unit.program)
        measuring = self.tools.measurer is not None
        device = self.device.name if measuring else ""
        driver = (self.device.driver or "") if measuring else ""
        space = f"{bounds}, {ranges}"
        if bounds.exact:  # what has the same bits as some calls may have others than those of the same program
            space += f", {mark_of(unit)}"
        return region_key(program, self.tools.target, device=device, driver=driver, space=space), names

    def _from_store(self, unit: SearchUnit, place: Place, key: str, names: Renaming) -> UnitResult | None:
        """Verified again."""
        document: Mapping[str, object] | None = self.store.get(key) if self.store is not None else None
        if document is None or self.store is None:
            return None
        try:
            return recall(document, unit, place.name, self.tools.target, names)
        except NotRight as error:
            note(error, f"what is stored of {place.name}, a kernel for {place.function} of {self.path}")
            self.store.notice(f"What was stored of {place.name} is not used, and searched for again: {error}.")
            return None
