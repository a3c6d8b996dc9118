"""Which local names surely have a value where a run of statements begins, whatever way the function took to it.

Definite assignment, as a forward analysis of the function's body: what a branch alone binds is not surely bound after
it, nor what a loop's body alone binds after the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from mugraph.trace.syntax.nodes import Function, number_of
from mugraph.trace.syntax.statements import SCOPES, stored_names

_Bound = frozenset[str]


def surely_bound(function: Function, at: ast.stmt) -> _Bound:
    """Names of the function's that have a value whenever the statement is about to run."""
    args = function.args
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found: list[_Bound] = []
    _through(function.body, frozenset(arg.arg for arg in given if arg is not None), at, found)
    return frozenset[str]().union(*found[:1]).intersection(*found[1:])


def surely_read(run: Sequence[ast.stmt]) -> set[str]:
    """Names whose values from before the run it reads whatever way it takes: without a value for one of them, it raises
    in any case."""
    found: set[str] = set()
    stored: set[str] = set()
    for statement in run:
        stored |= _named_inside(statement)
        read: set[str] = set()
        if isinstance(statement, ast.If):
            read |= surely_read_by(statement.test) | (surely_read(statement.body) & surely_read(statement.orelse))
        elif isinstance(statement, ast.For):
            read |= surely_read_by(statement.iter)
        elif isinstance(statement, ast.While):
            read |= surely_read_by(statement.test)
        elif isinstance(statement, ast.With):
            read |= {name for item in statement.items for name in surely_read_by(item.context_expr)}
            read |= surely_read(statement.body) - _named_inside(*statement.items)
        elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return):
            if statement.value is not None:
                read |= surely_read_by(statement.value)
            if isinstance(statement, ast.AugAssign):
                read |= {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
        found |= read - stored
        stored |= stored_names([statement])
        if any(isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise) for node in ast.walk(statement)):
            break
    return found


def surely_read_by(expression: ast.expr, last: int | None = None) -> set[str]:
    """Names that are read whenever the expression is evaluated. last: the number of the last node that counts"""
    read: set[str] = set()
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and (last is None or number_of(node) <= last):
            read.add(node.id)
        if isinstance(node, ast.IfExp):
            stack.append(node.test)
        elif isinstance(node, ast.BoolOp):
            stack.append(node.values[0])
        elif isinstance(node, ast.Compare):
            stack += [node.left, node.comparators[0]]
        elif not isinstance(node, SCOPES):
            stack += ast.iter_child_nodes(node)
    return read


def bound_before_read(node: ast.AST) -> set[str]:
    """Names that evaluating the expressions of a statement, or one expression, binds (`:=`) before it reads them."""
    evaluated_first = node.value if isinstance(node, ast.Assign) else node
    unsure = {id(inner) for way in _sometimes(evaluated_first) for inner in ast.walk(way)}
    ends: dict[str, tuple[int, int]] = {}
    for inner in ast.walk(evaluated_first):
        if isinstance(inner, ast.NamedExpr) and id(inner) not in unsure:
            end = (inner.end_lineno or inner.lineno, inner.end_col_offset or 0)
            ends[inner.target.id] = min(end, ends.get(inner.target.id, end))
    early = {
        inner.id
        for inner in ast.walk(evaluated_first)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id in ends
        if (inner.lineno, inner.col_offset) < ends[inner.id]
    }
    return ends.keys() - early


def _through(block: Sequence[ast.stmt], bound: _Bound, at: ast.stmt, found: list[_Bound]) -> _Bound | None:
    """What is bound after a block; None where its end is not reached. found: what was bound where `at` began."""
    now: _Bound | None = bound
    for statement in block:
        if now is None:
            return None
        if statement is at:
            found.append(now)
        now = _after(statement, now, at, found)
    return now


def _after(statement: ast.stmt, bound: _Bound, at: ast.stmt, found: list[_Bound]) -> _Bound | None:
    def through(block: Sequence[ast.stmt], entering: _Bound) -> _Bound | None:
        return _through(block, entering, at, found)

    if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
        return None
    if isinstance(statement, ast.If):
        tested = bound | _stored([statement.test])
        return _either([through(statement.body, tested), through(statement.orelse, tested)])
    if isinstance(statement, ast.For | ast.AsyncFor):
        kept = bound - _deleted(statement)
        through(statement.body, kept | _stored([statement.target]))
        through(statement.orelse, kept)
        return kept
    if isinstance(statement, ast.While):
        kept = (bound - _deleted(statement)) | _stored([statement.test])
        through(statement.body, kept)
        through(statement.orelse, kept)
        return kept
    if isinstance(statement, ast.With | ast.AsyncWith):
        return through(statement.body, bound | _stored(item.optional_vars for item in statement.items))
    if isinstance(statement, ast.Try | ast.TryStar):
        kept = bound - _deleted(statement)
        tried = through(statement.body, kept)
        done = through(statement.orelse, tried) if tried is not None else None
        caught = [
            through(handler.body, kept | ({handler.name} if handler.name else frozenset[str]()))
            for handler in statement.handlers
        ]
        left = _either([done, *caught])
        last = through(statement.finalbody, kept)
        return None if left is None or last is None else left | last
    if isinstance(statement, ast.Match):
        ways = [through(case.body, bound) for case in statement.cases]
        return _either([bound - _deleted(statement), *ways])
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return bound
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = (alias.asname or alias.name.split(".")[0] for alias in statement.names)
        return bound | frozenset(names)
    if isinstance(statement, ast.ClassDef):
        return bound | {statement.name}
    return (bound | _stored([statement])) - _deleted(statement)


def _either(ways: Sequence[_Bound | None]) -> _Bound | None:
    reached = [way for way in ways if way is not None]
    return reached[0].intersection(*reached[1:]) if reached else None


def _named_inside(*nodes: ast.AST) -> set[str]:
    """What expressions bind (`:=`)."""
    return {one.target.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}


def _stored(nodes: Iterable[ast.AST | None]) -> _Bound:
    """What evaluating them binds, but for what an expression binds on one of its ways alone (`a and (b := c)`)."""
    given = [node for node in nodes if node is not None]
    unsure = {
        name.target.id
        for node in given
        for way in _sometimes(node)
        for name in ast.walk(way)
        if isinstance(name, ast.NamedExpr)
    }
    return frozenset(stored_names(given) - unsure)


def _sometimes(root: ast.AST) -> Iterator[ast.AST]:
    """Parts of expressions that are not always evaluated."""
    for node in ast.walk(root):
        if isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
        elif isinstance(node, ast.Compare):
            yield from node.comparators[1:]
        elif isinstance(node, SCOPES):
            yield node


def _deleted(statement: ast.stmt) -> _Bound:
    """Names that the statement, or one inside of it, may delete."""
    targets = (target for node in ast.walk(statement) if isinstance(node, ast.Delete) for target in node.targets)
    return frozenset(target.id for target in targets if isinstance(target, ast.Name))
