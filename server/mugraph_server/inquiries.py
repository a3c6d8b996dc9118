"""What is asked beside searches: whether kernels still fit, which arguments were recorded, what a μGraph looks like."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from mugraph.protocol import messages as m
from mugraph.protocol.settings import Theme
from mugraph.protocol.values import Region

from mugraph_server.documents.source import Source
from mugraph_server.engine.client import ids
from mugraph_server.engine.engines import Engines
from mugraph_server.engine.state import EngineGone, EngineRefused
from mugraph_server.log import logger
from mugraph_server.regions import Regions
from mugraph_server.searches import Searches, Spawn

Form = Literal["text", "svg", "overview"]

_KERNELS = "_mugraph"
_DRAWINGS_KEPT = 300


class Inquiries:
    """wanted: gives the form and theme of the drawings that a hover shows. current: whether a source is still there."""

    def __init__(
        self,
        regions: Regions,
        engines: Engines,
        searches: Searches,
        current: Callable[[Source], bool],
        wanted: Callable[[], tuple[Form, Theme]],
        spawn: Spawn,
    ) -> None:
        self._regions = regions
        self._engines = engines
        self._searches = searches
        self._current = current
        self._wanted = wanted
        self._spawn = spawn
        self._drawings: OrderedDict[tuple[str, Form, Theme], str] = OrderedDict()
        self._under_way: dict[tuple[str, Form, Theme], asyncio.Task[None]] = {}
        self._checking: set[str] = set()

    # --- kernels and recordings -----------------------------------------------------------------------------------

    def settled(self, source: Source) -> None:
        """The source's question was answered, or there was none."""
        file = self._regions.get(source.uri)
        if file is None:
            return
        if _KERNELS in source.text:
            if source.uri not in self._checking:
                self._checking.add(source.uri)
                self._spawn(self._check(source))
        elif file.checks:
            self._regions.checked(source.uri, ())
        if any(mark.region.status == "needs-shapes" for mark in file.marks):
            self._spawn(self._recordings(source))

    async def _check(self, source: Source) -> None:
        stamp = source.stamp
        try:
            request = m.CheckKernels(next(ids), self._searches.document(source))
            found = await self._engines.of(source.path).ask(request, m.KernelChecks)
        except (EngineGone, EngineRefused) as error:
            logger.info("the kernels of %s are not checked: %s", source.path, error)
            return
        finally:
            self._checking.discard(source.uri)
        if self._current(source) and source.stamp == stamp:
            self._regions.checked(source.uri, found.checks)

    async def _recordings(self, source: Source) -> None:
        try:
            request = m.AskRecordings(next(ids), self._searches.document(source))
            found = await self._engines.of(source.path).ask(request, m.Recordings)
        except (EngineGone, EngineRefused) as error:
            logger.info("what was recorded of %s is not known: %s", source.path, error)
            return
        if self._current(source):
            self._regions.recorded(source.uri, found.recordings)

    # --- drawings -------------------------------------------------------------------------------------------------

    def improved(self, source: Source, region: Region) -> None:
        """Draws the improved regions before anybody asks, so that a hover need not wait."""
        form, theme = self._wanted()
        self._begin(source, region, form, theme)

    def drawing(self, region: Region, form: Form, theme: Theme) -> str | None:
        """The drawing of a region if there is one already; "" if the region has none."""
        found = self._drawings.get((region.id, form, theme))
        if found is not None:
            self._drawings.move_to_end((region.id, form, theme))
        return found

    async def draw(self, source: Source, region: Region, form: Form, theme: Theme, patience_s: float) -> str | None:
        """Waits for the drawing, at most so long. None if it takes longer; it will be there the next time."""
        found = self.drawing(region, form, theme)
        if found is not None or not region.id:
            return found
        task = self._begin(source, region, form, theme)
        if task is not None:
            await asyncio.wait({task}, timeout=patience_s)
        return self.drawing(region, form, theme)

    def _begin(self, source: Source, region: Region, form: Form, theme: Theme) -> asyncio.Task[None] | None:
        """Begins a drawing. Only an engine that knows the region can make it; none is started for that."""
        place = region.id, form, theme
        running = self._under_way.get(place)
        if running is not None:
            return running
        if not region.id or place in self._drawings or not self._searches.is_known(source):
            return None
        self._under_way[place] = self._spawn(self._draw(source, region, form, theme))
        return self._under_way[place]

    async def _draw(self, source: Source, region: Region, form: Form, theme: Theme) -> None:
        place = region.id, form, theme
        try:
            request = m.Draw(next(ids), source.uri, region.key, form, theme)
            text = (await self._engines.of(source.path).ask(request, m.Drawing)).text
        except EngineRefused as error:
            logger.info("a region of %s is not drawn: %s", source.path, error)
            text = ""
        except EngineGone as error:
            logger.info("a region of %s is not drawn: %s", source.path, error)
            return
        finally:
            self._under_way.pop(place, None)
        self._drawings[place] = text
        while len(self._drawings) > _DRAWINGS_KEPT:
            self._drawings.popitem(last=False)
