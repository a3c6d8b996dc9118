"""Constants as a person writes them: short ones as they are, sizes by name, the others as named parameters."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.codegen.tile.axes import Plan
from mugraph.codegen.tile.index import Names
from mugraph.codegen.tile.softmax import LOG2E

SHORT = 4
"""Characters up to which a number explains itself."""


class Constants:
    """Text of constants; `named` collects the compile-time parameters they need."""

    def __init__(self, plan: Plan, names: Names) -> None:
        self._plan = plan
        self._names = names
        self.named: dict[str, float] = {}
        self._names_of: dict[tuple[str, float], str] = {}

    def text(self, name: str, value: float, reduced: Iterable[str] = ()) -> str:
        """reduced: axes summed in what the constant multiplies or divides: a mean's divisor is one of their sizes."""
        for axis in sorted(axis for axis in reduced if not self._plan[axis].dynamic):
            if value == self._plan[axis].size:
                return self._names.size[axis]
            if value == 1.0 / self._plan[axis].size:
                return f"(1.0 / {self._names.size[axis]})"
        literal = repr(value)
        if len(literal) <= SHORT and not literal.startswith(("inf", "nan", "-")):
            return literal
        return self.parameter(name.upper(), value)

    def base_two(self, scale: str, value: float) -> str:
        """The factor of a base-2 exponential: log2(e), times the constant `scale` when there is one."""
        if scale.rstrip("_0123456789") == "c":  # a constant without a name of its own
            scale = "scale"
        return self.parameter("LOG2E" if value == LOG2E else f"{scale.upper()}_LOG2E", value)

    def parameter(self, wanted: str, value: float) -> str:
        key = (wanted, value)
        if key not in self._names_of:
            self._names_of[key] = self._names.scope.unique(wanted)
            self.named[self._names_of[key]] = value
        return self._names_of[key]
