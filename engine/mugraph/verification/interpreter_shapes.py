"""What Triton's interpreter says of a shape or a type is made once, and not for each tensor. Tensors of one shape are
not broadcast to it."""

from __future__ import annotations

from typing import Any


def remember_shapes(interpreter: Any) -> None:
    """interpreter: the module triton.runtime.interpreter, before anything was launched"""
    _of_tensors(interpreter.tl.core)
    _of_numpy(interpreter)
    _alike(interpreter.interpreter_semantic)


def _of_tensors(language: Any) -> None:
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
        key = tuple(type.shape.values) if type.is_block() else ()
        known = said.get(key)
        if known is None:
            tensor(self, handle, type)
            said[key] = self.numel, self.shape
            return
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.numel, self.shape = known

    language.block_type.__init__, language.tensor.__init__ = block_type, of_type


def _of_numpy(interpreter: Any) -> None:
    """NumPy's type for a type of the language."""
    found = interpreter._get_np_dtype

    def of(kind: Any) -> Any:
        known = getattr(kind, "_of_numpy", None)
        if known is None:
            known = kind._of_numpy = found(kind)
        return known

    interpreter._get_np_dtype = of


def _alike(semantic: Any) -> None:
    broadcast = semantic.broadcast_impl_value

    def together(lhs: Any, rhs: Any) -> Any:
        ours, theirs = (one.type.shape if one.type.is_block() else None for one in (lhs, rhs))
        if ours is theirs or (ours is not None and theirs is not None and ours.values == theirs.values):
            return lhs, rhs
        return broadcast(lhs, rhs)

    semantic.broadcast_impl_value = together
