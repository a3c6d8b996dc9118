"""Which of a guard's checks is the first that says no: they are made again, one after the other, as its text has them.

What is read of a guard: returned conditions, `if COND: return False`, loops, assignments, `try`, and the guard
functions of its module that it calls. What is written otherwise is taken as one check.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, TypeVar

from .names import Names

_Function = ast.FunctionDef
_DEEPEST = 12
_RUNTIME = "mugraph_runtime_"
_OF_REFUSALS = re.compile(r"_learn_no|_\w+_(?:refused|differs)")
"""What remembers, in a guard, that it has said no: that is not why."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Asked:
    """A guard function that was called: its arguments, and what the guard's own words for them are."""

    name: str
    given: tuple[Any, ...]
    words: tuple[str, ...]


@dataclass
class Frame:
    """values: of all names that a check may read. names: what stands behind local ones. asked: the calls that led
    here, the outermost first. unread: what `tried` could not read, and why."""

    values: dict[str, Any]
    names: Names
    asked: tuple[Asked, ...] = ()
    compiled: dict[int, CodeType] = field(default_factory=dict[int, CodeType])
    unread: dict[str, str] = field(default_factory=dict[str, str])

    def value(self, node: ast.expr) -> Any:
        return eval(self._code(node), self.values)

    def _code(self, node: ast.expr) -> CodeType:
        code = self.compiled.get(id(node))
        if code is None:
            code = self.compiled[id(node)] = compile(ast.Expression(node), "<guard>", "eval")
        return code

    def tried(self, node: ast.expr) -> Any:
        """None where it cannot be read."""
        try:
            code = self._code(node)
        except (SyntaxError, TypeError, ValueError):  # a part of an expression that is none by itself
            return None
        try:
            return eval(code, self.values)
        except NameError:  # a comprehension's own name
            return None
        except Exception as error:  # the user's objects may raise anything
            self.unread[self.said(node)] = type(error).__name__
            return None

    def said(self, node: ast.expr) -> str:
        """In a person's words."""
        return self.names.said(node, self.values)

    def run(self, node: ast.stmt) -> None:
        code = self.compiled.get(id(node))
        if code is None:
            code = self.compiled[id(node)] = compile(ast.Module([node], []), "<guard>", "exec")
        exec(code, self.values)


@dataclass(frozen=True)
class Refusal:
    """A check that said no. node: the check. truth: what it came to, or error: what it raised. beside: of several that
    say no together only, the others, the first first."""

    node: ast.expr
    frame: Frame
    truth: bool = False
    error: Exception | None = None
    beside: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class _End:
    """A function has returned."""

    value: Any
    why: Refusal | None


class _Raised(Exception):
    def __init__(self, why: Refusal) -> None:
        super().__init__()
        self.why = why


class Guards:
    """The guard functions of one kernel module, and of the runtime that it shares with others."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._functions = _functions(tree)
        self._files = {path: self._functions}
        self._compiled: dict[int, CodeType] = {}
        self._assigned: dict[int, ast.stmt] = {}
        self._supposed: Callable[[Refusal], bool] = _as_it_came
        self._instead: Mapping[str, _Function] = {}

    def refusal(
        self, name: str, space: Mapping[str, Any], given: Sequence[Any], said: Sequence[str] = ()
    ) -> Refusal | None:
        """space: the module's names. said: what the user's file calls what is given. None if every check holds now.
        Raises what is not foreseen."""
        end = self._made(name, space, given, said)
        return None if end.value else end.why

    def holds(
        self,
        name: str,
        space: Mapping[str, Any],
        given: Sequence[Any],
        said: Sequence[str],
        supposed: Callable[[Refusal], bool],
        instead: Mapping[str, ast.FunctionDef],
    ) -> bool:
        """What the guard would say. supposed: whether a check is to count as if it had come out the other way. instead:
        by name, functions that are made in place of the guard's own. Raises what is not foreseen."""
        self._supposed, self._instead = supposed, instead
        try:
            return bool(self._made(name, space, given, said).value)
        finally:
            self._supposed, self._instead = _as_it_came, {}

    def _made(self, name: str, space: Mapping[str, Any], given: Sequence[Any], said: Sequence[str]) -> _End:
        function = self._functions[name]
        words = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        words = list(said) if len(said) == len(words) else words
        try:
            return self._called(function, space, tuple(given), tuple(words), (), outermost=True)
        except _Raised as raised:
            return _End(None, raised.why)

    def _called(
        self,
        function: _Function,
        space: Mapping[str, Any],
        given: tuple[Any, ...],
        words: tuple[str, ...],
        asked: tuple[Asked, ...],
        outermost: bool = False,
        keywords: Mapping[str, Any] | None = None,
    ) -> _End:
        arguments = function.args
        values, names = dict(space), Names()
        plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        defaults = [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]
        with_default = plain[len(plain) - len(arguments.defaults) :]
        with_default += [
            a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None
        ]
        frame = Frame(
            values, names, asked if outermost else (*asked, Asked(function.name, given, words)), self._compiled
        )
        for name, default in zip(with_default, defaults, strict=True):
            values[name] = frame.value(default)
        for name, value, said in zip(plain, given, words, strict=False):
            values[name] = value
            names.say(name, said)
            if isinstance(value, tuple):
                names.say_items(name, _items_of(said))
        if arguments.vararg is not None:
            values[arguments.vararg.arg] = given[len(plain) :]
            names.say_items(arguments.vararg.arg, words[len(plain) :])
        values.update(keywords or {})
        return self._body(function.body, frame) or _End(None, None)

    def _body(self, body: Sequence[ast.stmt], frame: Frame) -> _End | None:
        for node in body:
            end = self._statement(node, frame)
            if end is not None:
                return end
        return None

    def _statement(self, node: ast.stmt, frame: Frame) -> _End | None:
        match node:
            case ast.Return(value):
                if value is None or isinstance(value, ast.Constant):
                    return _End(frame.value(value) if value is not None else None, None)
                return self._judged(value, frame)
            case ast.If(test, then, orelse):
                came = self._judged(test, frame)
                end = self._body(then if came.value else orelse, frame)
                return _End(end.value, _both(came, end)) if end is not None else None
            case ast.Assign([ast.Name(name)], value):
                _trying(lambda: frame.run(node), value, frame)
                frame.names.bind(name, value, frame.values)
            case ast.For(target, items, inner):
                for word, item in zip(*_trying(lambda: self._items(items, frame), items, frame), strict=False):
                    frame.values["__item__"] = item
                    frame.run(self._assigned.setdefault(id(target), _assigned(target)))
                    if isinstance(target, ast.Name) and word:
                        frame.names.say(target.id, word)
                    end = self._body(inner, frame)
                    if end is not None:
                        return end
            case ast.Try(inner, handlers, orelse, final):
                try:
                    end = self._body([*inner, *orelse], frame)
                except _Raised as raised:
                    end = self._body(handlers[0].body, frame) if handlers else None
                    end = _End(end.value, end.why or raised.why) if end is not None else None
                return end or self._body(final, frame)
            case ast.Global() | ast.Nonlocal() | ast.Pass():
                pass
            case ast.Expr(ast.Constant()):
                pass
            case ast.Expr(value):
                _trying(lambda: frame.run(node), value, frame)
            case _:
                frame.run(node)
        return None

    def _items(self, node: ast.expr, frame: Frame) -> tuple[list[str], list[Any]]:
        """What a loop goes through, in words and as values."""
        values = list(frame.value(node))
        words = frame.names.items_of(node)
        return words if len(words) == len(values) else [""] * len(values), values

    def _judged(self, node: ast.expr, frame: Frame) -> _End:
        """What a condition comes to, and the check that makes it so."""
        match node:
            case ast.BoolOp(ast.And(), parts):
                return self._first(parts, frame, False)
            case ast.BoolOp(ast.Or(), parts):
                return self._first(parts, frame, True)
            case ast.UnaryOp(ast.Not(), part):
                came = self._judged(part, frame)
                return _End(not came.value, came.why)
            case ast.IfExp(test, then, orelse):
                return self._judged(then if self._judged(test, frame).value else orelse, frame)
            case ast.Call(ast.Name(name)) if _OF_REFUSALS.fullmatch(name):
                return _End(False, None)
            case ast.Call(ast.Name(name), given, keywords) if text := self._text_of(frame.values.get(name)):
                if len(frame.asked) < _DEEPEST and all(one.arg for one in keywords):
                    return self._descended(node, text, given, keywords, frame)
            case _:
                pass
        value = _trying(lambda: frame.value(node), node, frame)
        came = Refusal(node, frame, bool(value))
        return _End(not value, None) if self._supposed(came) else _End(value, came)

    def _first(self, parts: Sequence[ast.expr], frame: Frame, ending: bool) -> _End:
        """Of conditions that are made until one comes to `ending`: that one, or all of them."""
        came = _End(not ending, None)
        others: list[Refusal] = []
        for part in parts:
            came = self._judged(part, frame)
            if bool(came.value) == ending:
                return came
            if came.why is not None:
                others.append(came.why)
        if len(others) > 1:
            return _End(came.value, replace(others[-1], beside=tuple(others[:-1])))
        return _End(came.value, others[0]) if others else came

    def _text_of(self, function: object) -> _Function | None:
        """The text of a guard function; None for what is none, and for what was put in the place of one."""
        if not isinstance(function, FunctionType):
            return None
        file = function.__code__.co_filename
        if file not in self._files and os.path.basename(file).startswith(_RUNTIME):
            self._files[file] = _read(file)
        text = self._files.get(file, {}).get(function.__name__)
        if text is None or not _is_text_of(function, text):
            return None
        return self._instead.get(text.name, text)

    def _descended(
        self, node: ast.Call, function: _Function, given: list[ast.expr], keywords: list[ast.keyword], frame: Frame
    ) -> _End:
        values: list[Any] = []
        words: list[str] = []
        for one in given:
            if isinstance(one, ast.Starred):
                said, items = self._items(one.value, frame)
                values += items
                words += said
            else:
                values.append(_trying(lambda one=one: frame.value(one), one, frame))
                words.append(frame.said(one))
        named = {str(one.arg): frame.value(one.value) for one in keywords}
        came = self._called(
            function, frame.values[function.name].__globals__, tuple(values), tuple(words), frame.asked, keywords=named
        )
        return came if came.why is not None else _End(came.value, Refusal(node, frame, bool(came.value)))


def _items_of(words: str) -> list[str]:
    """The words for a tuple's elements."""
    try:
        node = ast.parse(words, mode="eval").body
    except SyntaxError:
        return []
    return [ast.unparse(element) for element in node.elts] if isinstance(node, ast.Tuple) else []


def _as_it_came(_: Refusal) -> bool:
    return False


def _functions(tree: ast.Module) -> dict[str, _Function]:
    return {node.name: node for node in tree.body if isinstance(node, _Function)}


def _read(path: str) -> dict[str, _Function]:
    try:
        with open(path, "rb") as file:
            return _functions(ast.parse(file.read(), path))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}


def _both(test: _End, end: _End) -> Refusal | None:
    """Why a statement under a test that held has ended a function: for both reasons, its own first."""
    if end.why is None or test.why is None or not test.value:
        return end.why or test.why
    return replace(test.why, beside=(*end.why.beside, replace(end.why, beside=()), *test.why.beside))


def _is_text_of(function: FunctionType, text: _Function) -> bool:
    first = min([text.lineno, *(one.lineno for one in text.decorator_list)])
    return function.__name__ == text.name and function.__code__.co_firstlineno == first


def _trying(make: Callable[[], _T], node: ast.expr, frame: Frame) -> _T:
    try:
        return make()
    except _Raised:
        raise
    except Exception as error:
        raise _Raised(Refusal(node, frame, error=error)) from error


def _assigned(target: ast.expr) -> ast.stmt:
    return ast.fix_missing_locations(ast.Assign([target], ast.Name("__item__", ast.Load()), lineno=1))
