"""Where a kernel reads and writes is computed once, not once a scenario.

Triton's interpreter takes most of its time for the arithmetic of places and masks, which is the same whatever numbers
are in the tensors. What a function of the language makes of integers is remembered by what these were made of: a whole
number of a launch, a program id or the counter of a loop by its value, `tl.arange` by its ends. Of addresses their
distance from the tensor's is remembered, which lies elsewhere at each launch. Nothing that was loaded is.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

_OF_TENSORS = frozenset(
    f"__{side}{name}__" for name in ("add", "sub", "mul", "floordiv", "mod", "and", "or") for side in ("", "r")
) | {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__getitem__", "to"}
_OF_LANGUAGE = frozenset({"arange", "minimum", "maximum", "expand_dims"})
_OF_ADDRESSES = frozenset({"__add__", "__radd__"})
_MOST = 1 << 22
"""Elements that are remembered; then all are forgotten."""
_ADDRESS = "address"


class _Remembered:
    """What functions made, by their names and what they were given."""

    def __init__(self, interpreter: Any) -> None:
        self._language, self._handle = interpreter.tl.core, interpreter.TensorHandle
        self._made: dict[tuple[object, ...], Any] = {}
        self._elements = 0

    def made(self, name: str, function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The function's result, with the same numbers in it as if it were called."""
        keys = [self._key(one) for one in (*given, *named.values())]
        if None in keys:
            return function(*given, **named)
        bases = [one._base for one in given if hasattr(one, "_base")]
        if bases and (name not in _OF_ADDRESSES or len(bases) > 1 or named):
            return function(*given, **named)
        key = (name, len(given), *named, *keys)
        found = self._made.get(key)
        if found is not None:
            return self._at(found, bases[0]) if bases else found
        found = function(*given, **named)
        if bases:
            distance = copy(found)
            distance.handle = self._handle(found.handle.data - bases[0], found.handle.dtype)
            self._remember(key, distance)
            found._made_of, found._base = key, bases[0]
        elif self._is_of_integers(found):
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
            self._made.clear()
            self._elements = found.handle.data.size
        found._made_of = key
        self._made[key] = found

    def _is_of_integers(self, one: Any) -> bool:
        return isinstance(one, self._language.tensor) and one.dtype.is_int()

    def _key(self, one: Any) -> object:
        """Equal for what is equal in every launch, but for the tensor that it is an address in; None where that is not
        known."""
        language = self._language
        if isinstance(one, language.tensor):
            known = getattr(one, "_made_of", None)
            if known is None and not one.type.is_block():
                if one.dtype.is_int():
                    known = one._made_of = "number", one.dtype.name, int(one.handle.data.item())
                elif one.dtype.is_ptr() and one.handle.data.size == 1:
                    known = one._made_of = _ADDRESS, str(one.dtype)
                    one._base = one.handle.data.reshape(-1)[0]
            return known
        if isinstance(one, language.constexpr):
            one = one.value
        if isinstance(one, language.dtype):
            return None if one.is_block() or one.is_ptr() else ("type", one.name)
        if isinstance(one, tuple):
            parts = tuple(map(self._key, one))
            return None if None in parts else parts
        if one is None or one == slice(None):
            return "new dimension" if one is None else "all of a dimension"
        return (type(one).__name__, one) if isinstance(one, int) else None


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


def remember_shapes(interpreter: Any) -> None:
    """What a tensor says of its shape is made once for each shape, and so is what is known of a shape's size."""
    language = interpreter.tl.core
    block, tensor = language.block_type.__init__, language.tensor.__init__
    sizes: dict[tuple[int, ...], tuple[Any, Any, str]] = {}
    said: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        key = tuple(shape)
        known = sizes.get(key) if all(type(size) is int for size in key) else None
        if known is None:
            block(self, element_ty, shape)
            sizes[tuple(self.shape)] = self.shape, self.numel, str(self.shape)
            return
        self.element_ty = element_ty
        self.shape, self.numel, shown = known
        self.name = f"<{shown}, {element_ty}>"

    def of_type(self: Any, handle: Any, type: Any) -> None:
        key = tuple(type.shape) if type.is_block() else ()
        known = said.get(key)
        if known is None:
            tensor(self, handle, type)
            said[key] = self.numel, self.shape
            return
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.numel, self.shape = known

    language.block_type.__init__, language.tensor.__init__ = block_type, of_type
