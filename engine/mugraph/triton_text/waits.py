"""Kernels that are launched before the kernel before them in the stream has ended (`launch_pdl=True`): what they may
not do before `gdc_wait()`.

It waits until all kernels before have ended, and what they have written is there. Before that a kernel may only read
what its launcher was given, and that only if the launcher's own first kernel was launched after all before it had
ended. It has to wait in every block, on every path, whatever it reads: then its own end says that those before have
ended, too, which is what the next one waits for.

What it asks to come into the second-level cache it does not read: all that is written passes through that cache. Only
the addresses have to be the tensor's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mugraph.triton_text.refusals import Unreadable, Wrong

WAITS = frozenset({"tl.extra.cuda.gdc_wait", "tl.extra.cuda.gdc.gdc_wait"})
STARTS_NEXT = frozenset({"tl.extra.cuda.gdc_launch_dependents", "tl.extra.cuda.gdc.gdc_launch_dependents"})
"""A hint: whatever is started by it waits for the end."""
PREFETCH = re.compile(r"prefetch\.global\.L2 \[\$1\];\s*(//.*)?")
"""Of tl.inline_asm_elementwise: the first operand of its only argument is asked for."""
_OPTION = "launch_pdl"


@dataclass(frozen=True)
class Start:
    """early: a launch may begin before what is before it has ended. given: what the launcher is given is there"""

    early: bool = False
    given: bool = True


@dataclass
class Stream:
    """What a launcher has put into the stream: was the last of it a kernel of its own, and what did that one find?"""

    _kernel: bool = False
    _given: bool = False

    def start_of(self, options: Mapping[str, Any]) -> Start:
        """Of a launch with these options, which is put into it."""
        early = options.get(_OPTION, False)
        if not isinstance(early, bool | int | None):
            raise Unreadable(f"what {_OPTION} is depends on what is not known")
        start = Start(True, self._kernel and self._given) if early else Start()
        self._kernel, self._given = True, start.given
        return start

    def other(self) -> None:
        """A kernel of PyTorch's: how that was launched is not known."""
        self._kernel = False


@dataclass
class Waiting:
    """A run of a kernel, up to its wait."""

    kernel: str
    start: Start
    waits: bool = True

    def __post_init__(self) -> None:
        self.waits = self.start.early

    def wait(self) -> None:
        self.waits = False

    def check_write(self, name: str) -> None:
        """Raises Wrong."""
        if self.waits:
            raise self._wrong(f"writes to {name} before it waits: a kernel before it may still use what is there")

    def check_read(self, name: str, *, is_given: bool) -> None:
        """is_given: to the launcher, and no kernel of it writes there. Raises Wrong."""
        if self.waits and not is_given:
            raise self._wrong(f"reads {name} before it waits: what a kernel before it writes may not be there yet")
        if self.waits and not self.start.given:
            raise self._wrong(
                f"reads {name} before it waits, and what is before it in the stream is no kernel of the launcher: that"
                " may still write there"
            )

    def check_end(self, line: int) -> None:
        """Raises Wrong."""
        if self.waits:
            raise self._wrong("has blocks that end without tl.extra.cuda.gdc_wait()", line)

    def _wrong(self, what: str, line: int = 0) -> Wrong:
        return Wrong("order", f"{self.kernel} is launched before the kernel before it has ended, and {what}", line)
