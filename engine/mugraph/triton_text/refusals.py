"""Why a text is not accepted: it is wrong, or it cannot be read. Neither is ever passed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


class Refused(Exception):
    """line: of the text, 0 where it is not known. Printed as one sentence that names the line."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line

    def __str__(self) -> str:
        return f"{self.reason} (line {self.line})" if self.line else self.reason


class Unreadable(Refused):
    """The text has something that the reader does not know. Nothing is said about whether it is right."""


class TooMuch(Refused):
    """It takes too long to run. Nothing is said about whether it is right."""


class Wrong(Refused):
    """check: "bounds", "order", "unwritten", "type", "precision", "values" or "fields". where: kernel, tile and
    element, if known"""

    def __init__(self, check: str, reason: str, line: int = 0, where: Mapping[str, object] | None = None) -> None:
        super().__init__(reason, line)
        self.check = check
        self.where = dict(where or {})


class Diverges(Exception):
    """Blocks that run side by side go different ways here, so they have to be run apart. ways: [blocks]"""

    def __init__(self, ways: NDArray[np.int64]) -> None:
        super().__init__()
        self.ways = ways
