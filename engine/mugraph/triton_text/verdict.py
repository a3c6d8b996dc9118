"""What a check of a text has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TextVerdict:
    """
    passed: what was run agrees, and nothing is wrong with how memory is used
    reason: why not, in one sentence
    check:  which check it was: "unread" for what cannot be read, else as refusals.Wrong says
    line:   of the text
    where:  kernel, tile, tensor and element of a counterexample
    configurations: that the kernels' decorators name
    run, blocks: blocks that were run over the fields, and blocks that there are
    left: why none was run, where that is so
    seeds: of the random inputs of the fields, all of which agree
    bound: the chance that a wrong text passes (Mirage's Theorem 2), None where it was not earned or not asked for
    bound_note: what it was earned with, or why there is none
    without: what of the program is computed without kernels of Triton, in one sentence; "" where they compute it
    """

    passed: bool
    reason: str | None = None
    check: str = ""
    line: int = 0
    run: int = 0
    blocks: int = 0
    where: Mapping[str, object] = field(default_factory=dict[str, object])
    configurations: int = 1
    left: str = ""
    without: str = ""
    seeds: int = 1
    bound: float | None = None
    bound_note: str = ""

    @property
    def said(self) -> str:
        """What was run, in words."""
        if self.left:
            return f"the addresses of all its {self.blocks} blocks looked at, none run over the fields: {self.left}"
        part = "all of" if self.run == self.blocks else f"{self.run} of"
        return f"{part} its {self.blocks} blocks run over the fields, the addresses of all of them looked at"
