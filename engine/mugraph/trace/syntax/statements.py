"""What statements do, read off the syntax tree: which may be part of a region, what they store, what is read later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from mugraph.trace.syntax.nodes import Function, number_of

Loop = ast.For | ast.AsyncFor | ast.While
TO_CALL = ast.Try | ast.Import | ast.ImportFrom
"""Statements that no region replaces, and that are no effect of a function it calls: a try that nothing is raised in,
and imports, which bind names of that function and are made again by whoever needs the module."""


def _is_name_target(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(_is_name_target(item) for item in target.elts)
    return isinstance(target, ast.Name) or (isinstance(target, ast.Starred) and _is_name_target(target.value))


def stored_item(node: ast.stmt) -> ast.Subscript | None:
    """`x[i]` of `x[i] = y`. Whether it may be in a region depends on what `x` is."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0]
    return None


def statement_problem(node: ast.stmt) -> str | None:
    """Why a statement may be in no region, whatever its expressions do; None if it may."""
    if isinstance(node, ast.Assign):
        harmless = stored_item(node) is not None or all(_is_name_target(target) for target in node.targets)
        return None if harmless else "stores to an attribute or item"
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return None if isinstance(node.target, ast.Name) else "stores to an attribute or item"
    if isinstance(node, ast.For):
        return None if _is_name_target(node.target) else "stores to an attribute or item"
    if isinstance(node, ast.Delete):
        return None if all(isinstance(target, ast.Name) for target in node.targets) else "deletes an attribute or item"
    if isinstance(node, ast.With):
        plain = all(isinstance(item.context_expr, ast.Call) and item.optional_vars is None for item in node.items)
        return None if plain else "enters a context"
    if isinstance(node, TO_CALL):
        return f"a statement of kind {type(node).__name__.lower()}"
    allowed = (ast.Expr, ast.Return, ast.If, ast.While, ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.Match,
               ast.FunctionDef)  # fmt: skip
    return None if isinstance(node, allowed) else f"a statement of kind {type(node).__name__.lower()}"


def blocks_of(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement; none for a definition, whose body runs elsewhere."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for handler in getattr(node, "handlers", []):
        yield handler.body
    for case in getattr(node, "cases", []):
        yield case.body


def is_elif(block: Sequence[ast.stmt], of: ast.stmt) -> bool:
    """Whether a statement's block is written as `elif`: it has no place where another statement could stand."""
    is_one = len(block) == 1 and isinstance(block[0], ast.If) and isinstance(of, ast.If) and block[0] in of.orelse
    return is_one and block[0].col_offset == of.col_offset


def own_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statement and those nested in it."""
    yield node
    for block in blocks_of(node):
        for inner in block:
            yield from own_statements(inner)


def own_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions a statement evaluates itself."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef, ast.ClassDef)


def in_own_scope(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes in which a name means what it means at the root: not those of lambdas and comprehensions."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, SCOPES):
            yield node
            stack.extend(ast.iter_child_nodes(node))


def leaves_block(node: ast.stmt) -> bool:
    """Whether it may end the block it is in otherwise than by running through."""
    inner = (own for own in own_statements(node))
    return any(isinstance(own, ast.Return | ast.Break | ast.Continue) for own in inner)


@dataclass
class _Names(ast.NodeVisitor):
    """Names stored and loaded in one function scope, with the number of each load."""

    stored: set[str] = field(default_factory=set[str])
    loaded: set[str] = field(default_factory=set[str])

    def visit_Name(self, node: ast.Name) -> None:
        (self.stored if isinstance(node.ctx, ast.Store) else self.loaded).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.loaded.add(node.target.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.stored.add(node.name)
        inner = _Names()
        for child in ast.iter_child_nodes(node):
            inner.visit(child)
        self.loaded |= inner.loaded

    def visit_Lambda(self, node: ast.Lambda) -> None:
        inner = _Names()
        inner.generic_visit(node)
        self.loaded |= inner.loaded

    def _comprehension(self, node: ast.expr) -> None:
        inner = _Names()
        inner.generic_visit(node)
        self.loaded |= inner.loaded
        # A walrus in a comprehension stores outside it
        self.stored |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)


def tensors_of(statement: ast.Return, returned: object) -> tuple[torch.Tensor, ...]:
    """The tensors that a `return` of a tensor, or of a tuple of them written there, gave back; none for any other."""
    if isinstance(returned, torch.Tensor):
        return (returned,)
    if not isinstance(statement.value, ast.Tuple) or any(isinstance(e, ast.Starred) for e in statement.value.elts):
        return ()
    values = cast("tuple[object, ...]", returned)
    tensors = tuple(value for value in values if isinstance(value, torch.Tensor))
    return tensors if len(tensors) == len(values) else ()


def stored_names(nodes: Sequence[ast.AST]) -> set[str]:
    names = _Names()
    for node in nodes:
        names.visit(node)
    return names.stored


def loaded_names(nodes: Sequence[ast.AST]) -> set[str]:
    names = _Names()
    for node in nodes:
        names.visit(node)
    return names.loaded


def exposed_names(run: Sequence[ast.stmt]) -> set[str]:
    """Names that a run may read before it has stored them itself."""
    exposed: set[str] = set()
    stored: set[str] = set()
    for statement in run:
        exposed |= loaded_names([statement]) - stored
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.FunctionDef):
            stored |= stored_names([statement])
    return exposed


def read_after(function: Function, run: Sequence[ast.stmt]) -> set[str]:
    """Names that may be read after a run of statements of the function: later in it, in an enclosing loop, by closures.

    Too many rather than too few: a name is returned even if it is stored again before it is read.
    """
    names = _Names()
    inside = {id(statement) for statement in run}
    last = number_of(run[-1])

    def visit(statements: Sequence[ast.stmt], in_loop: bool) -> None:
        if in_loop and statements and any(id(statement) in inside for statement in statements):
            names.loaded |= exposed_names(run)
        for statement in statements:
            if id(statement) in inside:
                continue
            looping = in_loop or isinstance(statement, Loop)
            holds = any(id(own) in inside for own in own_statements(statement))
            if holds:
                if looping:  # its header is evaluated again
                    for child in ast.iter_child_nodes(statement):
                        if isinstance(child, ast.expr):
                            names.visit(child)
                for block in blocks_of(statement):
                    visit(block, looping)
            elif in_loop or number_of(statement) > last:
                names.visit(statement)
            else:
                for node in ast.walk(statement):
                    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.GeneratorExp):
                        names.visit(node)

    visit(function.body, False)
    return names.loaded
