"""Checks of modules, functions and classes: that they run the code that was analysed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from types import FunctionType, ModuleType
from typing import Any, cast

from .guards import Frame, Refusal
from .values import a

_HOOKS = {
    "_forward_hooks": "a forward hook is on it",
    "_forward_pre_hooks": "a hook is called before its forward",
    "_backward_hooks": "a backward hook is on it",
    "_backward_pre_hooks": "a hook is called before its backward",
}


@dataclass(frozen=True)
class Subject:
    """What a check is about. what: the name of the class or function that was analysed, without its module. of_module:
    it is a module, or a module's class; kind: that class's name; named: a guard was asked whether it is `what`; whole:
    that name with its module, where it is known"""

    thing: Any
    words: str
    what: str
    of_module: bool
    kind: str
    named: bool = False
    whole: str = ""

    @staticmethod
    def of(thing: Any, words: str, what: str, *, named: bool = False) -> Subject:
        return Subject(thing, words, what.rpartition(".")[2], is_module(thing), type(thing).__name__, named, what)

    @property
    def namesakes(self) -> tuple[str, str] | None:
        """The class that it is, and the one that was analysed: of one name, in two modules."""
        kind = cast("type[Any]", self.thing if isinstance(self.thing, type) else type(self.thing))
        is_one = f"{kind.__module__}.{kind.__qualname__}"
        return (is_one, self.whole) if "." in self.whole and self.whole not in (is_one, kind.__qualname__) else None


def is_module(value: object) -> bool:
    kind: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    return isinstance(kind, type) and isinstance(value, kind)


def _is_module_class(kind: type) -> bool:
    module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    return isinstance(module, type) and issubclass(kind, module)


def subject(refusal: Refusal) -> Subject | None:
    """The thing that a guard function was asked about together with a name; or a module whose own dictionary the check
    reads."""
    for asked in refusal.frame.asked:
        match asked.given:
            case (thing, str(what)) if is_module(thing) or callable(thing) or isinstance(thing, FunctionType):
                return Subject.of(thing, asked.words[0], what, named=True)
            case (str(region), *things) if asked.name == "_same_code":
                return _of_region(refusal, region, things, asked.words[1:])
            case _:
                pass
    for node in ast.walk(refusal.node):
        if isinstance(node, ast.expr):
            value = refusal.frame.tried(node)
            if is_module(value):
                return Subject.of(value, refusal.frame.said(node), type(value).__name__)
    return _owner_of_dictionary(refusal)


def _of_region(refusal: Refusal, region: str, things: Sequence[Any], words: Sequence[str]) -> Subject | None:
    """Of the classes and functions that a region relies on, the one that has the check which is made."""
    values = refusal.frame.values
    made = tuple(values.get(name) for name in ("read", "thing", "expected"))
    for thing, said, what in zip(things, words, values["_REGIONS"][region], strict=False):
        for check in values["_known"](thing, what):
            if all(one is other for one, other in zip(check, made, strict=False)):
                return _class_or_function(thing, said, what)
    return None


def _class_or_function(thing: Any, said: str, what: str | tuple[str, ...]) -> Subject:
    name = what.rpartition(".")[2] if isinstance(what, str) else getattr(thing, "__name__", said)
    is_class = isinstance(thing, type) and said.startswith("type(")
    words = said[len("type(") : -1] if is_class else said
    kind, whole = getattr(thing, "__name__", said), what if isinstance(what, str) else ""
    return Subject(thing, words, name, is_class and _is_module_class(thing), kind, True, whole)


def of_object(refusal: Refusal) -> str | None:
    common = _of_everything(refusal)
    if common is not None:
        return common
    cause, about = _cause(refusal), subject(refusal)
    if about is None:
        return cause
    if about.of_module and about.what != about.kind:
        return f"{about.words} is {a(about.kind)}, the kernel is for {a(about.what)}"
    if about.of_module and about.namesakes is not None:
        is_one, other = about.namesakes
        return f"{about.words} is {a(is_one)}, the kernel is for {a(other)}"
    if cause is None and not about.named:
        return None
    cause = cause or "its code is another"
    no = f"no {about.what}" if about.of_module else "not the code"
    return f"{about.words} is {no} as analysed: {cause}"


def _of_everything(refusal: Refusal) -> str | None:
    """Of hooks on all modules, and of PyTorch's functions."""
    frame, node = refusal.frame, refusal.node
    match node:
        case ast.Call(ast.Name("any"), [hooks]) | (ast.Name() as hooks) | (ast.Subscript() as hooks):
            if refusal.truth and _are_global_hooks(frame.tried(hooks)):
                return "a hook for all modules is registered"
        case ast.Compare(ast.Call(read, [thing]), [ast.NotEq() | ast.Eq()], [expected]):
            name = _differing(frame.value(read), frame.value(thing), frame.value(expected))
            if name and subject(refusal) is None:
                return f"{_owner(frame.value(thing))}{name} is not what it was"
            return _of_file(frame.value(read), frame.value(thing))
        case ast.Call(ast.Attribute(names, "isdisjoint"), [others]) if not refusal.truth:
            both = sorted({str(one) for one in frame.value(names)} & {str(one) for one in frame.value(others)})
            file = _file_of(frame, names)
            if file:
                return f"{file} has a name {' and '.join(both)} of its own now"
        case _:
            pass
    return None


def _of_file(read: Any, names: Any) -> str | None:
    """Of one of the names of the user's file, which a function reads that was made for it."""
    space = cast("dict[str, object]", names if type(names) is dict else {})
    file = str(space.get("__file__", "")).rpartition("/")[2]
    held = [cell.cell_contents for cell in getattr(read, "__closure__", None) or ()]
    name = next((one for one in held if type(one) is str), None)
    return f"{name} in {file} is something else than it was" if name and file else None


def _cause(refusal: Refusal) -> str | None:
    frame, node = refusal.frame, refusal.node
    match node:
        case ast.Subscript(_, ast.Constant(str(name))) | ast.Attribute(_, str(name)) if (
            name in _HOOKS and refusal.truth
        ):
            return _HOOKS[name]
        case ast.Call(ast.Attribute(names, "isdisjoint"), [others]) if not refusal.truth:
            both = sorted({str(one) for one in frame.value(names)} & {str(one) for one in frame.value(others)})
            return f"it has its own {' and '.join(both)}" if both else None
        case ast.Compare(ast.Constant(str(name)), [ast.In()], [_]) if refusal.truth:
            return f"it has its own {name}"
        case ast.Compare(ast.Call(read, [thing]), [ast.NotEq() | ast.Eq()], [expected]):
            name = _differing(frame.value(read), frame.value(thing), frame.value(expected))
            return f"{_owner(frame.value(thing))}{name} is not what it was" if name else None
        case _:
            return None


def _differing(read: Any, thing: Any, expected: Any) -> str | None:
    """Of what an attrgetter reads, the first name that is something else; None for what is no such comparison."""
    if type(read) not in (attrgetter, itemgetter):
        return None
    names = cast("list[object]", [*read.__reduce__()[1]])
    try:
        values = read(thing)
    except (AttributeError, KeyError):
        return str(names[0])
    pairs = zip(names, values, expected, strict=False) if len(names) > 1 else [(names[0], values, expected)]
    for name, value, was in pairs:
        if value is not was and value != was:
            return str(name).removesuffix(".__code__").removesuffix(".__defaults__")
    return str(names[0])


def _owner(thing: Any) -> str:
    if isinstance(thing, ModuleType):
        return f"{thing.__name__}."
    if isinstance(thing, dict):
        return f"{_name_of(thing)}." if "__name__" in thing else ""
    return f"{getattr(thing, '__qualname__', type(thing).__qualname__)}."


def _name_of(namespace: Any) -> str:
    return str(namespace["__name__"])


def _are_global_hooks(value: Any) -> bool:
    space: Any = vars(sys.modules["torch.nn.modules.module"])
    ours = [space[name] for name in space if name.startswith("_global_")]
    some: list[Any] = [*value] if type(value) in (list, tuple) else [value]
    return bool(some) and all(any(one is other for other in ours) for one in some)


def _file_of(frame: Frame, node: ast.expr) -> str | None:
    """The file whose names are read, if `node` reads a module's names."""
    for part in ast.walk(node):
        value = frame.tried(part) if isinstance(part, ast.expr) else None
        if type(value) is dict and "__file__" in value:
            return str(cast(Any, value)["__file__"]).rpartition("/")[2]
    return None


def _owner_of_dictionary(refusal: Refusal) -> Subject | None:
    """A module whose dictionary has a local name in the check."""
    frame = refusal.frame
    for node in ast.walk(refusal.node):
        if isinstance(node, ast.Name):
            behind = frame.names.behind(node)
            if isinstance(behind, ast.Attribute) and behind.attr == "__dict__":
                value = frame.tried(behind.value)
                if is_module(value):
                    return Subject.of(value, frame.said(behind.value), type(value).__name__)
    return None
