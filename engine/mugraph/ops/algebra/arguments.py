"""The arguments of a recorded call by the names of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mugraph.ir.calls import Argument, Call, Ref, Symbol
from mugraph.ir.dtypes import ELEMENTS
from mugraph.ir.sized_arguments import SizedNumber, sized_in
from mugraph.ops.algebra.refusals import NotLowerable


def rounded(value: float, dtype: str) -> float:
    """A number as PyTorch takes it beside tensors of this type: zero if it rounds to zero in the type, else as it is.
    (Element-wise operators of 16-bit tensors are computed in float32, so that it is not rounded further.)"""
    return 0.0 if abs(value) <= ELEMENTS[dtype].smallest / 2 else value


class Arguments:
    """A call's arguments, bound to parameter names.

    parameters: in order; `other|mat2` is one with two names, `*size` takes the rest, `**` at the end lets keywords that
    have no name here pass

    output: value number of the result that is asked for
    general: the call with what depends on sizes, where there are some

    A missing argument and an explicit None read the same. Every getter raises NotLowerable on an argument of another
    kind, so that a rule never works on something it did not expect.
    """

    def __init__(
        self, call: Call, parameters: Sequence[str], output: int, general: Callable[[], Arguments] | None = None
    ) -> None:
        self.call, self._general = call, general
        self.output = output
        anything = bool(parameters) and parameters[-1] == "**"
        parameters = parameters[:-1] if anything else parameters
        self._bound: dict[str, Argument] = {}
        aliases = {alias: name.split("|")[0] for name in parameters for alias in name.split("|")}
        aliases |= {alias.removeprefix("*"): name.removeprefix("*") for alias, name in aliases.items()}
        parameters = [name.split("|")[0] for name in parameters]
        star = parameters[-1].removeprefix("*") if parameters and parameters[-1].startswith("*") else ""
        plain = parameters[:-1] if star else parameters
        if len(call.args) > len(plain) and not star:
            raise NotLowerable(f"{call.target} got {len(call.args)} arguments; its rule knows {len(plain)}")
        self._bound.update(zip(plain, call.args, strict=False))
        if star:
            rest = call.args[len(plain) :]
            only = rest[0] if len(rest) == 1 else None
            self._bound[star] = only if isinstance(only, tuple) else tuple(rest)
        for name, argument in call.kwargs.items():
            known = aliases.get(name, "input" if name == "self" else name)
            if star and known == star:
                self._bound[star] = argument if isinstance(argument, tuple) else (argument,)
            elif known in plain:
                self._bound[known] = argument
            elif not anything and argument is not None and argument is not False:
                raise NotLowerable(f"{call.target} with {name}= has no rule")

    def get(self, name: str) -> Argument:
        return self._bound.get(name)

    def has(self, name: str) -> bool:
        return self._bound.get(name) is not None

    def operand(self, name: str) -> Ref | float:
        """A tensor or a number."""
        argument = self._bound.get(name)
        if isinstance(argument, Ref):
            return argument
        return self.number(name)

    def sized(self, name: str) -> Ref | float | SizedNumber:
        """A tensor or a number, which may depend on sizes."""
        found = sized_in(self._general().get(name)) if self._general is not None and not self.is_ref(name) else None
        return self.operand(name) if found is None else found

    def factor(self, name: str) -> Ref | float:
        """A number that something is multiplied by, 1 where the call says none; or a tensor that holds it."""
        return self.operand(name) if self.has(name) else 1.0

    def is_ref(self, name: str) -> bool:
        return isinstance(self._bound.get(name), Ref)

    def ref(self, name: str) -> Ref:
        """A tensor."""
        argument = self._bound.get(name)
        if not isinstance(argument, Ref):
            raise NotLowerable(f"{self.call.target} needs a tensor as {name}")
        return argument

    def optional(self, name: str) -> Ref | None:
        return self.ref(name) if self.has(name) else None

    def number(self, name: str, default: float | None = None) -> float:
        argument = self._bound.get(name)
        if argument is None and default is not None:
            return default
        if isinstance(argument, Symbol) and argument.name in ("math.inf", "inf", "float('inf')"):
            raise NotLowerable(f"{self.call.target} with an infinite {name}")
        if not isinstance(argument, (int, float)):
            raise NotLowerable(f"{self.call.target} needs a number as {name}")
        return float(argument)

    def integer(self, name: str, default: int | None = None) -> int:
        argument = self._bound.get(name)
        if argument is None and default is not None:
            return default
        if not isinstance(argument, int):
            raise NotLowerable(f"{self.call.target} needs an integer as {name}")
        return int(argument)

    def flag(self, name: str, default: bool = False) -> bool:
        argument = self._bound.get(name)
        if argument is None:
            return default
        if not isinstance(argument, bool):
            raise NotLowerable(f"{self.call.target} needs True or False as {name}")
        return argument

    def text(self, name: str, default: str | None = None) -> str:
        argument = self._bound.get(name)
        if argument is None and default is not None:
            return default
        if not isinstance(argument, str):
            raise NotLowerable(f"{self.call.target} needs a string as {name}")
        return argument

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An integer or a tuple of them; None where there is none."""
        argument = self._bound.get(name)
        if argument is None:
            return None
        items = argument if isinstance(argument, tuple) else (argument,)
        found: list[int] = []
        for item in items:
            if not isinstance(item, int):
                raise NotLowerable(f"{self.call.target} needs integers as {name}")
            found.append(int(item))
        return tuple(found)

    def each(self, name: str, rank: int, default: int = 1) -> tuple[int, ...]:
        """An argument that is one number for all of `rank` dimensions, or one for each."""
        found = self.integers(name) or (default,)
        if len(found) not in (1, rank):
            raise NotLowerable(f"{self.call.target} needs {rank} integers as {name}")
        return found * rank if len(found) == 1 else found

    def refs(self, name: str) -> tuple[Ref, ...]:
        argument = self._bound.get(name)
        items = argument if isinstance(argument, tuple) else (argument,)
        found: list[Ref] = []
        for item in items:
            if not isinstance(item, Ref):
                raise NotLowerable(f"{self.call.target} needs tensors as {name}")
            found.append(item)
        return tuple(found)
