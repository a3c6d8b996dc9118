"""Expressions of the text of kernels and launchers, over values that a language gives a meaning to."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from mugraph.triton_text.approximations import known_form
from mugraph.triton_text.language import (
    APART,
    BINARY,
    COMPARED,
    OPERATORS,
    Condition,
    Language,
    Loop,
    Unsettled,
    Value,
    is_host,
)
from mugraph.triton_text.objects import HOST_METHODS, Applied, Class, Context, HostMethod, Ignored, Kept, kept
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import Function, Module, Named, named

DEEPEST = 60
"""Calls in one another."""
_BUILTINS = (
    "range", "min", "max", "len", "int", "float", "bool", "abs", "round", "sum", "tuple", "list", "dict", "isinstance",
    "zip", "enumerate", "print", "str", "pow",
    "divmod", "any", "all", "sorted", "reversed", "ValueError", "RuntimeError", "NotImplementedError",
)  # fmt: skip
_CONSTANTS: Mapping[str, Value] = {"True": True, "False": False, "None": None}
DELETED = object()
"""What a name stands for after `del`."""


class Expressions(ABC):
    """line: of the text, at which the evaluation is"""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.line = 0
        self._depth = 0

    @abstractmethod
    def called(self, function: Function, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """What a function of the text returns."""

    def value(self, node: ast.expr, here: Mapping[str, Value], module: Module) -> Value:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(id=name):
                return self._name(name, here, module)
            case ast.BinOp(left, op, right):
                return self._binary(BINARY[type(op)], self.value(left, here, module), self.value(right, here, module))
            case ast.UnaryOp(op, operand):
                return self._unary(op, self.value(operand, here, module))
            case ast.Compare(left, ops, comparators):
                return self._compared(left, ops, comparators, here, module)
            case ast.BoolOp(op, values):
                return self._both(isinstance(op, ast.And), values, here, module)
            case ast.Call():
                return self._call(node, here, module)
            case ast.Attribute(owner, name):
                return self._attribute(self.value(owner, here, module), name)
            case ast.Subscript(owner, key):
                return self._subscript(self.value(owner, here, module), self.value(key, here, module))
            case ast.Slice(lower, upper, step):
                parts = [None if one is None else self.value(one, here, module) for one in (lower, upper, step)]
                return slice(*parts)
            case ast.Tuple(elts) | ast.List(elts):
                return tuple(self._elements(elts, here, module))
            case ast.Dict(keys, values):
                pairs = zip(keys, values, strict=True)
                return {self.value(k, here, module): self.value(v, here, module) for k, v in pairs if k is not None}
            case ast.IfExp(test, body, orelse):
                chosen = body if self._truth(self.value(test, here, module)) else orelse
                return self.value(chosen, here, module)
            case ast.Lambda():
                return Function(node, module, here)
            case ast.Set(elts):
                return tuple(self._elements(elts, here, module))
            case ast.JoinedStr():
                return ast.unparse(node)
            case ast.ListComp(elt, generators) | ast.GeneratorExp(elt, generators) | ast.SetComp(elt, generators):
                return tuple(self.value(elt, one, module) for one in self._comprehended(generators, here, module))
            case ast.DictComp(key, value, generators):
                every = list(self._comprehended(generators, here, module))
                return {self.value(key, one, module): self.value(value, one, module) for one in every}
            case _:
                raise Unreadable(f"{ast.unparse(node)} is not read", self.line)

    def _comprehended(
        self, generators: Sequence[ast.comprehension], here: Mapping[str, Value], module: Module
    ) -> Iterable[dict[str, Value]]:
        """What the names mean each time."""
        if not generators:
            yield dict(here)
            return
        first, *rest = generators
        values = self._iterated(self.value(first.iter, here, module))
        if isinstance(values, Loop):
            raise values.apart()
        for one in values:
            inner = dict(here)
            self._assign(first.target, one, inner)
            if all(self._truth(self.value(test, inner, module)) for test in first.ifs):
                yield from self._comprehended(rest, inner, module)

    def _elements(self, nodes: Sequence[ast.expr], here: Mapping[str, Value], module: Module) -> list[Value]:
        found: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += cast("Iterable[Value]", self.value(node.value, here, module))
            else:
                found.append(self.value(node, here, module))
        return found

    def _name(self, name: str, here: Mapping[str, Value], module: Module) -> Value:
        if name in here:
            if here[name] is DELETED:
                raise Unreadable(f"{name} is read after it is deleted", self.line)
            if here[name] is APART:
                raise Wrong("order", f"the last block of a group reads {name}, which depends on which block it is")
            if isinstance(here[name], Unsettled):
                raise here[name].apart()
            return here[name]
        if name in module.classes:
            return Class(module.classes[name], module)
        if name in module.doubtful:
            raise Unreadable(f"{name} {module.doubtful[name]}, which is not read", self.line)
        if name in module.functions:
            return module.functions[name]
        if name in module.constants:
            return self._constant(name, module)
        if name in module.imports:
            return named(module.imports[name])
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in _BUILTINS:
            return named(f"builtins.{name}")
        raise Unreadable(f"{name} is not defined in the text", self.line)

    def _constant(self, name: str, module: Module) -> Value:
        if self._depth >= DEEPEST:
            raise Unreadable(f"{name} is defined by itself", self.line)
        self._depth += 1
        try:
            return kept(self.value(module.constants[name], {}, module))
        finally:
            self._depth -= 1

    def _binary(self, op: str, a: Value, b: Value) -> Value:
        if is_host(a) and is_host(b) and op in OPERATORS:
            if op == "**" and isinstance(b, int | float) and abs(b) > 1024:
                raise Unreadable("a power is too large", self.line)
            return OPERATORS[op](a, b)
        return self._language.binary(op, a, b)

    def _unary(self, op: ast.unaryop, value: Value) -> Value:
        match op:
            case ast.Not():
                return not self._truth(value)
            case ast.USub():
                return -value if is_host(value) else self._language.unary("-", value)
            case ast.Invert():
                return ~value if is_host(value) else self._language.unary("~", value)
            case _:
                return value

    def _compared(
        self,
        left: ast.expr,
        ops: Sequence[ast.cmpop],
        comparators: Sequence[ast.expr],
        here: Mapping[str, Value],
        module: Module,
    ) -> Value:
        result: Value = None
        first = self.value(left, here, module)
        for op, node in zip(ops, comparators, strict=True):
            second = self.value(node, here, module)
            if isinstance(op, ast.Is | ast.IsNot):
                one: Value = (first is second or first == second) == isinstance(op, ast.Is)
            elif isinstance(op, ast.In | ast.NotIn):
                one = (first in second) == isinstance(op, ast.In)
            elif (is_host(first) and is_host(second)) or isinstance(first, Named) or isinstance(second, Named):
                one = OPERATORS[COMPARED[type(op)]](first, second)
            else:
                one = self._language.binary(COMPARED[type(op)], first, second)
            result = one if result is None else self._binary("&", result, one)
            first = second
        return result

    def _both(self, all_of: bool, nodes: Sequence[ast.expr], here: Mapping[str, Value], module: Module) -> Value:
        result: Value = None
        for number, node in enumerate(nodes):
            value = self.value(node, here, module)
            if not is_host(value) and self._is_tile(value):
                result = value if number == 0 else self._language.binary("&" if all_of else "|", result, value)
                continue
            if number and not is_host(result) and self._is_tile(result):
                result = self._language.binary("&" if all_of else "|", result, value)
                continue
            result = value
            if self._truth(value) != all_of:
                return value
        return result

    def _is_tile(self, value: Value) -> bool:
        return hasattr(value, "parts")

    def _attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Named):
            return self._language.attribute(owner.of(name), "")
        if isinstance(owner, str | int) and (type(owner), name) in HOST_METHODS:
            return HostMethod(owner, name)
        if isinstance(owner, Context):
            if name in ("save_for_backward", "mark_non_differentiable", "set_materialize_grads", "mark_dirty"):
                return Ignored()
            if name in owner.kept:
                return owner.kept[name]
            raise Unreadable(f"{name} is asked of the context, which has none", self.line)
        if isinstance(owner, Class):
            return self._of_class(owner, name)
        return self._language.attribute(owner, name)

    def _of_class(self, owner: Class, name: str) -> Value:
        """A function of torch.autograd: its `apply` is its forward."""
        for node in owner.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == ("forward" if name == "apply" else name):
                return (
                    Applied(Function(node, owner.module, {})) if name == "apply" else Function(node, owner.module, {})
                )
        raise Unreadable(f"{name} of the class {owner.node.name} is not read", self.line)

    def _subscript(self, owner: Value, key: Value) -> Value:
        if isinstance(owner, tuple | list | dict):
            return cast("Any", owner)[key]
        return self._language.subscript(owner, key)

    def _call(self, node: ast.Call, here: Mapping[str, Value], module: Module) -> Value:
        known = known_form(node)
        if known is not None:
            name, arguments = known
            return self._language.call(Named(name), [self.value(one, here, module) for one in arguments], {})
        function = self.value(node.func, here, module)
        arguments = self._elements(node.args, here, module)
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, here, module)
            if keyword.arg is None:
                keywords.update(cast("Mapping[str, Value]", value))
            else:
                keywords[keyword.arg] = value
        self.line = node.lineno
        if isinstance(function, HostMethod):
            return HOST_METHODS[type(function.owner), function.name](function.owner, *arguments)
        if isinstance(function, Ignored):
            return None
        if isinstance(function, Applied):
            return self.called(function.forward, [Context({}), *arguments], keywords)
        if isinstance(function, Function) and not function.is_jit:
            return self.called(function, arguments, keywords)
        return self._language.call(function, arguments, keywords)

    def _assign(self, target: ast.expr, value: Value, here: dict[str, Value]) -> None:
        match target:
            case ast.Name(id=name):
                here[name] = value
            case ast.Tuple(elts) | ast.List(elts):
                parts = tuple(cast("Iterable[Value]", value)) if isinstance(value, tuple | list) else ()
                rest = next((at for at, one in enumerate(elts) if isinstance(one, ast.Starred)), None)
                if rest is not None:
                    end = len(parts) - (len(elts) - rest - 1)
                    parts = (*parts[:rest], parts[rest:end], *parts[end:])
                    elts = [one.value if isinstance(one, ast.Starred) else one for one in elts]
                if len(parts) != len(elts):
                    raise Unreadable(f"{len(elts)} names are given other than {len(elts)} values", self.line)
                for element, part in zip(elts, parts, strict=True):
                    self._assign(element, part, here)
            case ast.Subscript(ast.Name(id=name), ast.Constant(value=key)) if isinstance(here.get(name), dict):
                if isinstance(here[name], Kept):
                    raise Unreadable(f"{name} outlives the call, and what later calls do depends on it", self.line)
                here[name] = {**here[name], key: value}
            case ast.Attribute(ast.Name(id=owner), name) if isinstance(here.get(owner), Context):
                here[owner].kept[name] = value
            case _:
                raise Unreadable(f"assignment to {ast.unparse(target)} is not read", self.line)

    def _truth(self, value: Value) -> bool:
        if isinstance(value, Condition):
            raise Unreadable("whether a block is the last one of its group is asked by other than `if`", self.line)
        return bool(value) if is_host(value) else self._language.truth(value)

    def _iterated(self, value: Value) -> Iterable[Value] | Loop:
        if isinstance(value, tuple | list | range | dict):
            return cast("Iterable[Value]", value)
        return self._language.loop(value)
