"""Where a kernel reads and writes is computed once, not once a scenario.

Triton's interpreter takes most of its time for the arithmetic of places and masks, which is the same whatever numbers
are in the tensors. What a function of the language makes of integers is remembered by what these were made of: a whole
number by its value, `tl.arange` by its ends. Of addresses their distance from the tensor's is remembered: it lies
elsewhere at each launch. Tiles that were loaded are not known by what they were made of, and so nothing is that follows
from them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import count
from typing import Any, cast

_OF_TENSORS = frozenset(
    f"__{side}{name}__" for name in ("add", "sub", "mul", "floordiv", "mod", "and", "or") for side in ("", "r")
) | {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__getitem__", "to"}
_OF_LANGUAGE = frozenset({"arange", "minimum", "maximum", "expand_dims"})
_OF_ADDRESSES = frozenset({"__add__", "__radd__"})
_MOST, _MOST_NUMBERS = 1 << 22, 1 << 16
"""Elements that are remembered, and what they were made of; then all is forgotten."""
_ADDRESS = "address"


class _Remembered:
    """What functions made, by their names and what they were given."""

    def __init__(self, interpreter: Any) -> None:
        self._language, self._handle = interpreter.tl.core, interpreter.TensorHandle
        self._tensor = interpreter.tl.core.tensor
        self._made: dict[tuple[object, ...], Any] = {}
        self._numbers: dict[object, int] = {}
        self._next = count()
        self._elements = 0

    def made(self, name: str, function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The function's result, with the same numbers in it as if it were called."""
        key: tuple[object, ...] = (name, *named)
        for one in (*given, *named.values()):
            own = self._key(one)
            if own is None:
                return function(*given, **named)
            key += (own,)
        bases = [one._base for one in given if isinstance(one, self._tensor) and hasattr(one, "_base")]
        if bases and (name not in _OF_ADDRESSES or len(bases) > 1 or named):
            return function(*given, **named)
        found = self._made.get(key)
        if found is not None:
            return self._at(found, bases[0]) if bases else found
        found = function(*given, **named)
        if bases:
            distance = copy(found)
            distance.handle = self._handle(found.handle.data - bases[0], found.handle.dtype)
            self._remember(key, distance)
            found._made_of, found._base = distance._made_of, bases[0]
        elif isinstance(found, self._tensor) and found.dtype.is_int():
            self._remember(key, found)
        return found

    def _at(self, distance: Any, base: Any) -> Any:
        found = copy(distance)
        found.handle = self._handle(distance.handle.data + base, distance.handle.dtype)
        found._base = base
        return found

    def _remember(self, key: tuple[object, ...], found: Any) -> None:
        self._elements += found.handle.data.size
        if self._elements > _MOST:
            self._forget()
        found._made_of = self._number(key)
        self._made[key] = found

    def _number(self, of: object) -> int:
        """Another one for whatever is another, also after all is forgotten."""
        known = self._numbers.get(of)
        if known is None:
            if len(self._numbers) > _MOST_NUMBERS:
                self._forget()
            known = self._numbers[of] = next(self._next)
        return known

    def _forget(self) -> None:
        self._made.clear()
        self._numbers.clear()
        self._elements = 0

    def _key(self, one: Any) -> object:
        """Equal for what is equal in every launch, but for the tensor that it is an address in; None where that is not
        known."""
        language = self._language
        if isinstance(one, self._tensor):
            known = getattr(one, "_made_of", None)
            if known is None and not one.type.is_block():
                if one.dtype.is_int():
                    known = one._made_of = self._number(("number", one.dtype.name, int(one.handle.data.item())))
                elif one.dtype.is_ptr() and one.handle.data.size == 1:
                    known = one._made_of = self._number((_ADDRESS, str(one.dtype)))
                    one._base = one.handle.data.reshape(-1)[0]
            return known
        if isinstance(one, language.constexpr):
            one = one.value
        if isinstance(one, int):
            return "number", type(one), one
        if isinstance(one, language.dtype):
            return None if one.is_block() or one.is_ptr() else ("type", one.name)
        if isinstance(one, tuple):
            parts = tuple(map(self._key, cast("tuple[Any, ...]", one)))
            return None if None in parts else parts
        if isinstance(one, slice):
            return "all of a dimension" if one == slice(None) else None
        return "new dimension" if one is None else None


def remember_places(interpreter: Any) -> None:
    """interpreter: the module triton.runtime.interpreter, before anything was launched"""
    language = interpreter.tl.core
    remembered = _Remembered(interpreter)
    patch = interpreter._patch_attr

    def patch_attr(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
        patch(owner, name, member, builder, scope)
        if name not in (_OF_TENSORS if owner is language.tensor else _OF_LANGUAGE):
            return
        called = getattr(owner, name)

        def replaced(*given: Any, **named: Any) -> Any:
            named.pop("_semantic", None)
            return remembered.made(name, called, given, named)

        setattr(owner, name, replaced)  # what was in its place before comes back with the launch's end

    interpreter._patch_attr = patch_attr
