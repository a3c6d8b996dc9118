"""A check that said no, in one sentence for a person."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import cast

from .guards import Refusal
from .modes import of_mode
from .objects import is_module, of_object, subject
from .tensors import of_tensor
from .values import a, compared, short

LONGEST = 200
_ADDRESS = "_address"
"""What a guard calls of a tensor before it compares anything."""
_OF_TENSORS = frozenset({"shape", "size", "dim", "dtype", "device", "stride", "requires_grad", "data_ptr"})


def sentence(refusal: Refusal) -> str:
    text = " ".join(_said(refusal).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _said(refusal: Refusal) -> str:
    if refusal.error is not None:
        return _of_error(refusal)
    rules: tuple[Callable[[Refusal], str | None], ...] = (of_mode, of_tensor, of_object)
    for one in (*refusal.beside, refusal):
        for rule in rules:
            text = rule(one)
            if text is not None:
                return text
    for one in (*refusal.beside, refusal):
        text = _of_values(one)
        if text is not None:
            return text
    frame = refusal.frame
    about = subject(refusal)
    if about is not None:
        return f"{about.words} is not as it was when it was analysed{_unread(refusal)}"
    said = frame.said(frame.names.behind(refusal.node))
    return f"{said} is {short(frame.value(refusal.node))}{_unread(refusal)}"


def _unread(refusal: Refusal) -> str:
    """What might have said more, if it could have been read."""
    unread = {name: error for one in (*refusal.beside, refusal) for name, error in one.frame.unread.items()}
    return f" ({', '.join(f'{name} cannot be read: {error}' for name, error in unread.items())})" if unread else ""


def _of_error(refusal: Refusal) -> str:
    """Of the innermost expression that cannot be read."""
    frame, error = refusal.frame, refusal.error
    if type(error).__name__ == "TraceError":
        return "torch.fx traces it"
    for node in reversed(list(ast.walk(refusal.node))):
        match node:
            case ast.Call(ast.Name(name), [given]) if name == _ADDRESS and not _is_tensor(value := frame.value(given)):
                was = "None" if value is None else a(type(value).__qualname__)
                return f"{frame.said(given)} is {was}, the kernel is for a tensor"
            case _:
                pass
        if not isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
            continue
        try:
            frame.value(node)
        except Exception as raised:  # the user's objects may raise anything: this is what the guard could not read
            said = frame.said(node)
            if isinstance(node, ast.Subscript) and isinstance(raised, KeyError):
                return f"{said} is not there"
            if isinstance(node, ast.Subscript) and isinstance(raised, TypeError):
                return (
                    f"{frame.said(node.value)} is {a(type(frame.value(node.value)).__qualname__)}, which has no parts"
                )
            if isinstance(node, ast.Attribute):
                owner = frame.value(node.value)
                if owner is None:
                    wanted = "the kernel is for a tensor" if node.attr in _OF_TENSORS else f"which has no {node.attr}"
                    return f"{frame.said(node.value)} is None, {wanted}"
                kind = "a module" if is_module(owner) else a(type(owner).__qualname__)
                return f"{frame.said(node.value)} is {kind} without {node.attr}"
            return f"{said} cannot be read ({type(raised).__name__})"
    return f"{frame.said(refusal.node)} cannot be read ({type(error).__name__})"


def _is_tensor(value: object) -> bool:
    return hasattr(value, "data_ptr")


def _of_values(refusal: Refusal) -> str | None:
    """Of two values that are not the same, a number that is not in its range, a name that means something else."""
    frame, pair = refusal.frame, compared(refusal)
    if pair is None:
        return None
    behind = frame.names.behind(pair.left)
    left = frame.said(behind)
    match behind:
        case ast.Call(ast.Attribute(space, "get"), [ast.Constant() | ast.Name() as name]):
            names = cast("dict[str, object]", frame.value(space))
            if type(names) is dict and "__name__" in names:
                file = str(names.get("__file__") or names["__name__"]).rpartition("/")[2]
                return f"{frame.value(name)} in {file} is something else than it was"
        case ast.Call(ast.Name("type"), [one]):
            was = pair.expected.__qualname__ if isinstance(pair.expected, type) else "another type"
            was = "tensor" if was in ("Tensor", "Parameter") else was
            said = frame.said(one)
            if pair.actual is type(None):
                return f"{said} is None, the kernel is for {a(was)}"
            if isinstance(pair.actual, type):
                return f"{said} is {a(pair.actual.__qualname__)}, the kernel is for {a(was)}"
        case ast.Call(ast.Name("getattr"), [one, *_]):
            return f"{frame.said(one)} is another than it was ({short(pair.actual)})"
        case _:
            pass
    if isinstance(pair.expected, FunctionType | type) or callable(pair.expected):
        return f"{left} is something else than it was"
    if pair.range is not None:
        return f"{left} is {short(pair.actual)}, the kernel is for {pair.range}"
    actual, expected = short(pair.actual), short(pair.expected)
    match refusal.node:
        case ast.Compare(_, [ast.Is() | ast.IsNot()], [right]) if actual == expected:
            return f"{left} is another {'tensor' if _is_tensor(pair.actual) else 'object'} than {frame.said(right)}"
        case _:
            return f"{left} is {actual}, the kernel is for {expected}"


__all__ = ["sentence"]
