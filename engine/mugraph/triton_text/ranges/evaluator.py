"""The part of Python that kernels are written in, where it is not known how often a loop runs, or which way a branch
goes: the body of a loop is read once, for any of its passes, and both ways of a branch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from mugraph.triton_text.language import Language, Loop, is_host
from mugraph.triton_text.python import Evaluator
from mugraph.triton_text.ranges.values import Bools
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.source import Module
from mugraph.triton_text.tiles import Floats


class Forgotten:
    """A number that differs from pass to pass of a loop, or with the way that was taken."""


@dataclass(frozen=True)
class Passes:
    """Any pass of a loop. within: what is read while it is open is of a pass"""

    value: Any
    within: AbstractContextManager[None]

    def __iter__(self) -> Iterator[Any]:
        with self.within:
            yield self.value


class Branching(Language, Protocol):
    def way(self, test: Bools, *, holds: bool) -> AbstractContextManager[None]:
        """What is read while this is open is so only where the test holds, or does not."""
        ...


class RangesEvaluator(Evaluator):
    def __init__(self, language: Branching) -> None:
        super().__init__(language)
        self._branching = language

    def _statement(self, statement: ast.stmt, here: dict[str, Any], module: Module) -> None:
        if not isinstance(statement, ast.If):
            super()._statement(statement, here, module)
            return
        self.line = statement.lineno
        test = self.value(statement.test, here, module)
        if is_host(test) or not isinstance(test, Bools):
            self._body(statement.body if self._truth(test) else statement.orelse, here, module)
            return
        before = dict(here)
        for body, holds in ((statement.body, True), (statement.orelse, False)):
            _check(body, self.line)
            here |= before
            with self._branching.way(test, holds=holds):
                self._body(body, here, module)
        _forget(_assigned([*statement.body, *statement.orelse]), here)

    def _loop(
        self,
        target: ast.expr,
        values: Iterable[Any] | Loop,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        here: dict[str, Any],
        module: Module,
    ) -> None:
        if not isinstance(values, Passes):
            super()._loop(target, values, body, orelse, here, module)
            return
        _check(body, self.line)
        _forget(_assigned(body), here)
        super()._loop(target, values, body, orelse, here, module)
        _forget({*_assigned(body), *_assigned([ast.Expr(target)])}, here)


def _check(body: Sequence[ast.stmt], line: int) -> None:
    if any(isinstance(node, ast.Return | ast.Break | ast.Continue) for one in body for node in ast.walk(one)):
        raise Unreadable("a loop or a branch is left early", line)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    names = (node for one in body for node in ast.walk(one) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _forget(names: Iterable[str], here: dict[str, Any]) -> None:
    """Of floating-point numbers nothing is known anyway."""
    for name in names:
        match here.get(name):
            case None | Floats():
                pass
            case float():
                here[name] = Floats((), "float32", None)
            case _:
                here[name] = Forgotten()
