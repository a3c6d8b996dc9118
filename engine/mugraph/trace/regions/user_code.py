"""The user's functions as text that can be compiled again. They are found from objects of the traced run."""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import cast

import torch

from mugraph.ir.ran import Code, said_of
from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.targets import target_of
from mugraph.trace.run.tape import File
from mugraph.trace.syntax.changed_names import ChangedNames, changed_names
from mugraph.trace.syntax.definition_text import Definition, imported_names, text_of
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.source import Source


def underlying(raw: object) -> tuple[FunctionType | None, tuple[str, ...]]:
    """The function in what a class or a module has under a name, and the functions of libraries that are around it."""
    raw, _ = _of_descriptor(raw)
    names: list[str] = []
    while isinstance(raw, FunctionType) and (inner := raw.__dict__.get("__wrapped__")) is not None:
        names.append(f"{raw.__globals__.get('__name__')}.{raw.__code__.co_qualname}")
        raw = inner
    return (raw if isinstance(raw, FunctionType) else None), tuple(names)


def layers_of(raw: object) -> Iterator[tuple[str, FunctionType]]:
    """The function in what a class or a module has under a name, last, and before it those that decorators have put
    around it. Each with what an expression for the object goes on with to lead there."""
    raw, at = _of_descriptor(raw)
    while isinstance(raw, FunctionType):
        yield at, raw
        raw, at = raw.__dict__.get("__wrapped__"), at + ".__wrapped__"


def _of_descriptor(raw: object) -> tuple[object, str]:
    """The function that a descriptor calls, and the attribute that has it where the class's own attribute is not it."""
    if isinstance(raw, staticmethod | classmethod):
        return cast("staticmethod[..., object]", raw).__func__, ""
    if isinstance(raw, property):
        return raw.fget, ".fget"
    if isinstance(raw, functools.cached_property):
        return cast("functools.cached_property[object]", raw).func, ".func"
    return raw, ""


def dotted(value: object) -> str | None:
    """A name by which a module, function or class of a library is found again; None where there is none."""
    if isinstance(value, ModuleType):
        return value.__name__ if sys.modules.get(value.__name__) is value else None
    names = [f"{attribute_of(value, '__module__')}.{attribute_of(value, '__qualname__')}"]
    if callable(value):
        names.append(target_of(value))
    return next((name for name in names if found(name) is value), None)


def found(name: str) -> object:
    """What a dotted name means; None where it means nothing."""
    module, _, last = name.rpartition(".")
    if name in sys.modules:
        return sys.modules[name]
    return getattr(sys.modules.get(module), last, None)


@dataclass
class UserCode:
    """The files of the user's that a run has imported."""

    files: Sequence[File]

    def __post_init__(self) -> None:
        self._nodes: dict[str, dict[tuple[int, str], list[Definition]]] = {}
        self._sources: dict[str, Source] = {file.source.path: file.source for file in self.files}
        self._lent = frozenset(file.source.path for file in self.files if not file.is_own)

    @functools.cached_property
    def changed_names(self) -> ChangedNames:
        """Of all files but those of libraries that were looked into."""
        return changed_names(file.source.tree for file in self.files if file.is_own)

    def owns(self, value: object) -> bool:
        """Whether a function, class or module is defined in one of the files."""
        if isinstance(value, FunctionType):
            return value.__code__.co_filename in self._sources
        if isinstance(value, ModuleType):
            return getattr(value, "__file__", None) in self._sources
        if isinstance(value, type):
            return self.owns(sys.modules.get(value.__module__))
        return False

    def lends(self, value: object) -> bool:
        """Whether a function, class or module is one of a library's that was looked into."""
        if isinstance(value, FunctionType):
            return value.__code__.co_filename in self._lent
        if isinstance(value, type):
            value = sys.modules.get(value.__module__)
        return isinstance(value, ModuleType) and getattr(value, "__file__", None) in self._lent

    def named(self, value: object) -> str | None:
        """The name by which a library's module, function or class is found again; None for what is the user's, and for
        a library's function that was looked into: its code is compared."""
        if self.owns(value) and not (self.lends(value) and not isinstance(value, FunctionType)):
            return None
        return library_name(value)

    def node(self, code: CodeType) -> Definition | None:
        """The definition that a function was made of; None where it cannot be told."""
        path = code.co_filename
        if path not in self._sources:
            return None
        if path not in self._nodes:
            self._nodes[path] = _by_place(self._sources[path].tree, self._numbered(path))
        found = self._nodes[path].get((code.co_firstlineno, code.co_name), [])
        return found[0] if len(found) == 1 else None

    def number(self, function: FunctionType) -> int | None:
        """The number of its definition's node."""
        node = self.node(function.__code__)
        return None if node is None else number_of(node)

    def code(self, raw: object) -> Code | None:
        """The function in what a class or a module has under a name. None where it cannot be told apart."""
        function, names = underlying(raw)
        if function is None:
            return None
        watched: list[Code] = []
        for _, layer in layers_of(raw):
            if layer is not function and self.owns(layer):
                code = self._alone(layer, ())
                if code is None:
                    return None
                watched.append(code)
        code = self._alone(function, names)
        return None if code is None else replace(code, around=tuple(watched))

    def _alone(self, function: FunctionType, around: tuple[str, ...]) -> Code | None:
        """The function without what is around it."""
        if not self.owns(function):
            root = str(function.__globals__.get("__name__", "")).partition(".")[0]
            known = root == "torch" or root in sys.stdlib_module_names
            return Code(function.__code__.co_qualname, wrapped=around) if known else None
        node = self.node(function.__code__)
        if node is None:
            return None
        free = tuple(name for name in function.__code__.co_freevars if name != "__class__")
        keywords = function.__kwdefaults__ or {}
        defaults = (*(function.__defaults__ or ()), *(keywords[name] for name in sorted(keywords)))
        source = self._sources[function.__code__.co_filename]
        outside: dict[str, str] = {}
        read = global_names(node)
        for name in sorted(read - {*free}):
            if name in function.__globals__:
                value = function.__globals__[name]
                known = self.named(value)
                if known is not None:
                    outside[name] = known
            elif hasattr(builtins, name):
                outside[name] = ""
        text, imported = text_of(source, node), tuple(sorted(read & imported_names(source.tree)))
        return Code(function.__code__.co_qualname, text, free, tuple(map(said_of, defaults)), around, outside, imported)

    def _numbered(self, path: str) -> Sequence[ast.AST]:
        return next(file.numbering.nodes for file in self.files if file.source.path == path)


def library_name(value: object) -> str | None:
    """The dotted name of a library's module, function or class; None for anything else."""
    if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        return dotted(value)
    return dotted(value) if callable(value) and type(value).__module__ in ("builtins", "torch") else None


def _by_place(tree: ast.Module, nodes: Sequence[ast.AST]) -> dict[tuple[int, str], list[Definition]]:
    """Definitions by what a code object says of its place: its first line, that of a decorator if it has one."""
    places: dict[tuple[int, str], list[Definition]] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            places.setdefault((line, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            places.setdefault((node.lineno, "<lambda>"), []).append(node)
    return places


def global_names(node: Definition) -> frozenset[str]:
    """Names that a function, or one inside it, reads and none of them binds: of its module, or of functions around."""
    return frozenset(_free_names(node))


def _free_names(node: ast.AST) -> set[str]:
    """Names that are read and not bound in the scope of the node."""
    if isinstance(node, ast.Lambda):
        bound = _arguments(node.args)
        body: Sequence[ast.AST] = [node.body]
    else:
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        bound = _arguments(node.args)
        body = node.body
    declared: set[str] = set()
    read: set[str] = set()
    for inner in _scope(body):
        match inner:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                declared.update(names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
                read |= _free_names(inner)
            case ast.Lambda():
                read |= _free_names(inner)
            case ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound.update((alias.asname or alias.name).partition(".")[0] for alias in aliases)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case _:
                pass
    return read - (bound - declared)


def _scope(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function's body; of functions in it, the definition and what is evaluated with it, not the body.
    Comprehensions count as the function's own: a name that only they bind is not read elsewhere, as a rule."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stack += [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        elif isinstance(node, ast.Lambda):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        else:
            stack.extend(ast.iter_child_nodes(node))


def _arguments(args: ast.arguments) -> set[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


def is_own_of_torch(kind: type) -> bool:
    """A class that PyTorch defines, at the place that its name says."""
    return kind.__module__.partition(".")[0] == "torch" and found(f"{kind.__module__}.{kind.__qualname__}") is kind


def helpers_of(kind: type, name: str) -> Iterator[str]:
    """Methods of a class of PyTorch's that one of them calls, itself first, by the names in their code."""
    waiting, seen = [name], {name}
    while waiting:
        here = waiting.pop()
        function, _ = underlying(_raw(kind, here))
        if function is None:
            continue
        yield here
        for other in function.__code__.co_names:
            raw = _raw(kind, other)
            if other not in seen and raw is not None and underlying(raw)[0] is not None:
                seen.add(other)
                waiting.append(other)


def _raw(kind: type, name: str) -> object:
    """What the class, or the nearest of its bases below torch.nn.Module, has under the name."""
    for owner in kind.__mro__:
        if owner in (torch.nn.Module, object):
            return None
        if name in vars(owner):
            return vars(owner)[name]
    return None


def properties_of(kind: type) -> tuple[str, ...]:
    """Attributes that a class, or a base of it below torch.nn.Module, computes itself: its data descriptors."""
    found: set[str] = set()
    for owner in kind.__mro__:
        if owner in (torch.nn.Module, object):
            break
        found |= {name for name, raw in vars(owner).items() if hasattr(cast("type[object]", type(raw)), "__set__")}
    return tuple(sorted(found))


def definitions_along(kind: type, name: str) -> Mapping[int, object]:
    """Position among the class's bases (itself 0) -> what is there under the name, as far as torch.nn.Module."""
    found: dict[int, object] = {}
    for position, owner in enumerate(kind.__mro__):
        if owner in (torch.nn.Module, object):
            break
        if name in vars(owner):
            found[position] = vars(owner)[name]
    return found
