"""The part of Python that kernels and launchers are written in, over values that a language gives a meaning to.

Only the text is read: nothing of it is ever executed. What is not known is refused with its line.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from mugraph.triton_text.approximations import known_form
from mugraph.triton_text.objects import HOST_METHODS, Applied, Class, Context, HostMethod, Ignored, Kept, kept
from mugraph.triton_text.refusals import Refused, Unreadable
from mugraph.triton_text.source import Function, Module, Named, named

Value = Any
_DEEPEST = 60
_LONGEST = 2_000_000
"""Steps of one evaluation."""

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": operator.mod,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_BUILTINS = (
    "range", "min", "max", "len", "int", "float", "bool", "abs", "round", "sum", "tuple", "list", "dict", "isinstance",
    "zip", "enumerate", "print", "str", "pow",
    "divmod", "any", "all", "sorted", "reversed", "ValueError", "RuntimeError", "NotImplementedError",
)  # fmt: skip
_DECORATORS = frozenset({
    "triton.jit", "triton.runtime.jit.jit", "triton.autotune", "triton.heuristics", "torch.no_grad",
    "torch.inference_mode", "torch.compiler.disable", "torch._dynamo.disable", "torch.jit.ignore", "staticmethod",
    "torch.amp.custom_fwd", "torch.cuda.amp.custom_fwd",
})  # fmt: skip
"""That change nothing of what a function computes, or whose changes are read where kernels are launched."""
_CONSTANTS: Mapping[str, Value] = {"True": True, "False": False, "None": None}
_DELETED = object()
"""What a name stands for after `del`."""


class Language(Protocol):
    """What values other than Python's own numbers, texts and sequences mean."""

    def binary(self, op: str, a: Value, b: Value) -> Value: ...
    def unary(self, op: str, a: Value) -> Value: ...
    def attribute(self, owner: Value, name: str) -> Value: ...
    def subscript(self, owner: Value, key: Value) -> Value: ...
    def call(self, function: Value, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value: ...
    def truth(self, value: Value) -> bool: ...
    def loop(self, iterable: Value) -> Iterable[Value]: ...


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def is_host(value: Value) -> bool:
    """Is it of Python itself?"""
    return value is None or isinstance(value, bool | int | float | str | tuple | list | dict | slice)


class Evaluator:
    """line: of the text, at which the evaluation is"""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.line = 0
        self._depth, self._steps = 0, 0

    def run(self, function: Function, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """What the function returns. Refusals carry the line at which they happened."""
        try:
            return self.called(function, arguments, named)
        except Refused as error:
            error.line = error.line or self.line
            raise
        except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise Unreadable(f"the text cannot be evaluated: {error}", self.line) from error

    def called(self, function: Function, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
        for name, _ in function.decorators:
            if name not in _DECORATORS:
                raise Unreadable(f"{function.name} has the decorator {name}, which may change what it does", self.line)
        here = {**function.closure, **self.bound(function, arguments, named)}
        if self._depth >= _DEEPEST:
            raise Unreadable(f"{function.name} calls itself, or calls are nested too deeply", self.line)
        self._depth += 1
        line = self.line
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, here, function.module)
            self._body(function.node.body, here, function.module)
        except _Return as result:
            return result.value
        finally:
            self._depth -= 1
        self.line = line
        return None

    def bound(self, function: Function, arguments: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
        """Parameters -> values."""
        spec = function.node.args
        names = [one.arg for one in (*spec.posonlyargs, *spec.args)]
        if len(arguments) > len(names) and spec.vararg is None:
            raise Unreadable(f"{function.name} takes other arguments", function.node.lineno)
        found: dict[str, Value] = dict(zip(names, arguments, strict=False))
        if spec.vararg is not None:
            found[spec.vararg.arg] = tuple(arguments[len(names) :])
        every = {*names, *(one.arg for one in spec.kwonlyargs)}
        rest: dict[str, Value] = {}
        for name, value in named.items():
            if name not in every and spec.kwarg is not None:
                rest[name] = value
                continue
            if name not in every or name in found:
                raise Unreadable(f"{function.name} is given {name}, which it does not take", self.line)
            found[name] = value
        if spec.kwarg is not None:
            found[spec.kwarg.arg] = rest
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
        defaults |= {
            one.arg: value for one, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value is not None
        }
        for name in every - found.keys():
            if name not in defaults:
                raise Unreadable(f"{function.name} is not given {name}", self.line)
            found[name] = kept(self.value(defaults[name], {}, function.module))
        return found

    def _body(self, body: Sequence[ast.stmt], here: dict[str, Value], module: Module) -> None:
        for statement in body:
            self._statement(statement, here, module)

    def _statement(self, statement: ast.stmt, here: dict[str, Value], module: Module) -> None:
        self.line = statement.lineno
        self._steps += 1
        if self._steps > _LONGEST:
            raise Unreadable("the text runs for too long", self.line)
        match statement:
            case ast.Assign(targets, value):
                result = self.value(value, here, module)
                for target in targets:
                    self._assign(target, result, here)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._assign(target, self.value(value, here, module), here)
            case ast.AugAssign(ast.Name(id=name), op, value):
                old = self._name(name, here, module)
                here[name] = self._binary(_BINARY[type(op)], old, self.value(value, here, module))
            case ast.Expr(value):
                if not isinstance(value, ast.Constant):
                    self.value(value, here, module)
            case ast.If(test, body, orelse):
                self._body(body if self._truth(self.value(test, here, module)) else orelse, here, module)
            case ast.For(target, iterable, body, orelse):
                self._loop(target, self._iterated(self.value(iterable, here, module)), body, orelse, here, module)
            case ast.While(test, body, orelse):
                while self._truth(self.value(test, here, module)):
                    try:
                        self._body(body, here, module)
                    except _Continue:
                        continue
                    except _Break:
                        return
                self._body(orelse, here, module)
            case ast.Return(value):
                raise _Return(None if value is None else self.value(value, here, module))
            case ast.Assert(test):
                if not self._truth(self.value(test, here, module)):
                    raise Unreadable("an assertion of the text does not hold", self.line)
            case ast.With(items, body):
                for item in items:
                    self.value(item.context_expr, here, module)
                self._body(body, here, module)
            case ast.FunctionDef(name=name):
                here[name] = Function(statement, module, here)
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Delete(targets):
                for target in targets:
                    self._delete(target, here, module)
            case ast.Pass() | ast.Import() | ast.ImportFrom():
                pass
            case ast.Raise():
                raise Unreadable("the text raises an error for these inputs", self.line)
            case _:
                raise Unreadable(f"{type(statement).__name__} is not read", self.line)

    def _loop(
        self,
        target: ast.expr,
        values: Iterable[Value],
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        here: dict[str, Value],
        module: Module,
    ) -> None:
        for value in values:
            self._assign(target, value, here)
            try:
                self._body(body, here, module)
            except _Continue:
                continue
            except _Break:
                return
        self._body(orelse, here, module)

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

    def _delete(self, target: ast.expr, here: dict[str, Value], module: Module) -> None:
        if not isinstance(target, ast.Name):
            raise Unreadable(f"del {ast.unparse(target)} is not read", self.line)
        self._name(target.id, here, module)
        here[target.id] = _DELETED

    def _truth(self, value: Value) -> bool:
        return bool(value) if is_host(value) else self._language.truth(value)

    def _iterated(self, value: Value) -> Iterable[Value]:
        if isinstance(value, tuple | list | range | dict):
            return cast("Iterable[Value]", value)
        return self._language.loop(value)

    def value(self, node: ast.expr, here: Mapping[str, Value], module: Module) -> Value:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(id=name):
                return self._name(name, here, module)
            case ast.BinOp(left, op, right):
                return self._binary(_BINARY[type(op)], self.value(left, here, module), self.value(right, here, module))
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
        for one in self._iterated(self.value(first.iter, here, module)):
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
            if here[name] is _DELETED:
                raise Unreadable(f"{name} is read after it is deleted", self.line)
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
        if self._depth >= _DEEPEST:
            raise Unreadable(f"{name} is defined by itself", self.line)
        self._depth += 1
        try:
            return kept(self.value(module.constants[name], {}, module))
        finally:
            self._depth -= 1

    def _binary(self, op: str, a: Value, b: Value) -> Value:
        if is_host(a) and is_host(b) and op in _OPERATORS:
            if op == "**" and isinstance(b, int | float) and abs(b) > 1024:
                raise Unreadable("a power is too large", self.line)
            return _OPERATORS[op](a, b)
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
                one = _OPERATORS[_COMPARED[type(op)]](first, second)
            else:
                one = self._language.binary(_COMPARED[type(op)], first, second)
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
