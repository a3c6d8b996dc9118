"""Runs a program once for its tape, after it was found out by other runs which of its numbers may vary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from mugraph.trace.run.entries import Entry
from mugraph.trace.run.recorder import Recorder
from mugraph.trace.run.varying import AllDecided, Watch
from mugraph.trace.run.varying_inputs import Inputs, done, set_by_methods
from mugraph.trace.syntax.source import Source

_log = logging.getLogger("mugraph.trace")

_TRIES = 4
"""Each leaves out the numbers by which the one before decided."""


@dataclass(frozen=True)
class Runs:
    """recorder: has the tape of the last run. run: makes one, and raises what the program raises"""

    recorder: Recorder
    entry: Entry
    source: Source
    run: Callable[[Inputs], None]

    def leave_tape(self) -> None:
        """With numbers that vary, where the run does the same with other ones; raises what `run` does."""
        names: frozenset[str] | None = None
        for _ in range(_TRIES):
            watch, up = self._with(names, others=1)
            if not watch.names:
                return
            others, before = [up], [watch]
            if (up is None or watch.comparisons) and not watch.decides:  # a number may be a table's last place
                watch, down = self._with(names, others=-1)
                others.append(down)
                before.append(watch)
            tape = self.recorder.tape
            takes = tape.varying or tape.picked or watch.comparisons
            if any(one is not None for one in others) and not watch.decides and takes:
                watch, same = self._with(names)
                if same is not None and same in others and not watch.decides:
                    return
            flipped = frozenset[str]().union(*(watch.flipped(other) for other in before))
            names = frozenset(watch.names - (watch.decides or flipped or watch.compared or watch.names))
            if not names:
                break
        self.run(Inputs(Watch(), frozenset(), others=0))

    def _with(self, names: frozenset[str] | None, *, others: int = 0) -> tuple[Watch, list[Hashable] | None]:
        """What a run does with numbers that vary, as `Inputs` takes them; None where it did not come to its end."""
        entry, watch = self.entry, Watch(now=lambda: self.recorder.begun)
        kept = set_by_methods(self.source.tree, entry.owner)
        same = frozenset(entry.picture.same if entry.picture is not None and not entry.arguments else ())
        try:
            self.run(Inputs(watch, names, others, kept, same, whole=not entry.sizes))
        except (AllDecided, Exception) as error:
            if not watch.names:
                raise
            _log.debug("%s does not run with numbers that vary: %r", entry.function, error)
            return watch, None
        finally:
            watch.is_on = False
        return watch, done(self.recorder.tape, self.recorder.values)
