"""The part of Python that kernels and launchers are written in, over values that a language gives a meaning to.

Only the text is read: nothing of it is ever executed. What is not known is refused with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from mugraph.triton_text.expressions import DEEPEST, DELETED, Expressions
from mugraph.triton_text.language import BINARY, Condition, Language, Loop, Value
from mugraph.triton_text.objects import kept
from mugraph.triton_text.refusals import Refused, Unreadable
from mugraph.triton_text.source import Function, Module

_LONGEST = 2_000_000
"""Steps of one evaluation."""
_DECORATORS = frozenset({
    "triton.jit", "triton.runtime.jit.jit", "triton.autotune", "triton.heuristics", "torch.no_grad",
    "torch.inference_mode", "torch.compiler.disable", "torch._dynamo.disable", "torch.jit.ignore", "staticmethod",
    "torch.amp.custom_fwd", "torch.cuda.amp.custom_fwd",
})  # fmt: skip
"""That change nothing of what a function computes, or whose changes are read where kernels are launched."""


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Evaluator(Expressions):
    """Functions and their statements."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._steps = 0

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
        if self._depth >= DEEPEST:
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
                here[name] = self._binary(BINARY[type(op)], old, self.value(value, here, module))
            case ast.Expr(value):
                if not isinstance(value, ast.Constant):
                    self.value(value, here, module)
            case ast.If(test, body, orelse):
                asked = self.value(test, here, module)
                if isinstance(asked, Condition):
                    self._under(asked, statement, here, module)
                else:
                    self._body(body if self._truth(asked) else orelse, here, module)
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

    def _under(
        self,
        asked: Condition,
        statement: ast.If,
        here: dict[str, Value],
        module: Module,
    ) -> None:
        holds = asked.enter(here, id(statement))
        try:
            self._body(statement.body if holds else statement.orelse, here, module)
        finally:
            if holds:
                asked.leave()

    def _loop(
        self,
        target: ast.expr,
        values: Iterable[Value] | Loop,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        here: dict[str, Value],
        module: Module,
    ) -> None:
        if isinstance(values, Loop):

            def once(value: Value) -> None:
                self._assign(target, value, here)
                self._body(body, here, module)

            values.go_round(once, here, body)
            self._body(orelse, here, module)
            return
        for value in values:
            self._assign(target, value, here)
            try:
                self._body(body, here, module)
            except _Continue:
                continue
            except _Break:
                return
        self._body(orelse, here, module)

    def _delete(self, target: ast.expr, here: dict[str, Value], module: Module) -> None:
        if not isinstance(target, ast.Name):
            raise Unreadable(f"del {ast.unparse(target)} is not read", self.line)
        self._name(target.id, here, module)
        here[target.id] = DELETED
