"""Functions rewritten so that they report what they evaluate, without changing what they compute.

Every call, operator, attribute and subscript in a function body becomes a call of a hook that is told the node it
stands for; every statement is announced before it runs. So a recorded operator's place in the source is exact by
construction on every Python version, where a code object's position table has to be interpreted.

`f(a, *b)` becomes `__mugraph__.call(7, f, a, *b)`; evaluation order stays what it was. Left alone are decorators,
defaults and annotations, class bodies, module-level statements, generators and coroutines, and calls that look at
the frame they are made in (`super()`, `locals()`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import cast

from mugraph.trace.pytorch.callables import HOOKS
from mugraph.trace.syntax.nodes import is_plain, number_of
from mugraph.trace.syntax.operators import BINARY
from mugraph.trace.syntax.statements import stored_item

_LOOKS_AT_FRAME = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint", "__import__"})


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    yield from ast.iter_fields(node)


def _later(expression: ast.expr) -> ast.expr:
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(nothing, expression), expression)


def _stays_in_place(expression: ast.expr) -> bool:
    """Whether it has another meaning in a function of its own."""
    moved = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    for node in ast.walk(expression):
        if isinstance(node, moved) or (isinstance(node, ast.Name) and node.id in _LOOKS_AT_FRAME):
            return True
    return False


class _Body(ast.NodeTransformer):
    """Rewrites what is inside function bodies."""

    def __init__(self, class_name: str | None) -> None:
        self.class_name = class_name

    def hook(self, name: str, node: ast.AST, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
        target = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
        call = ast.Call(target, [ast.Constant(number_of(node)), *args], list(keywords))
        return ast.copy_location(call, node)

    def expression(self, node: ast.expr) -> ast.expr:
        result: ast.expr = self.visit(node)
        return result

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            result.append(ast.copy_location(ast.Expr(self.hook("step", statement)), statement))
            result.append(self.visit(statement))
        return result

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in _fields(node):
            if isinstance(value, list):
                items = cast("list[object]", value)
                if items and isinstance(items[0], ast.stmt):
                    setattr(node, name, self.block(cast("list[ast.stmt]", items)))
                else:
                    setattr(node, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in items])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return rewrite_function(node, self.class_name)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return rewrite_class(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.expression(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self.expression(node.guard)
        node.body = self.block(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self.expression(node.body)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """What its contexts do when they end is none of the last statement's inside."""
        self.generic_visit(node)
        ended = ast.copy_location(ast.Expr(self.hook("ended", node)), node)
        node.body = [ast.copy_location(ast.Try(node.body, [], [], [ended]), node)]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None:
            node.value = self.hook("returned", node, self.expression(node.value))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _LOOKS_AT_FRAME:
            return self.generic_visit(node)
        function = self.expression(node.func)
        args = [self.expression(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.expression(keyword.value)
        return self.hook("call", node, function, *args, keywords=node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        operator = ast.Constant(type(node.op).__name__)
        return self.hook("binary", node, operator, self.expression(node.left), self.expression(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not) or isinstance(node.operand, ast.Constant):
            return self.generic_visit(node)
        return self.hook("unary", node, ast.Constant(type(node.op).__name__), self.expression(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if all(isinstance(one, ast.Is | ast.IsNot) for one in node.ops):
            return self.generic_visit(node)
        names = [type(one).__name__ for one in node.ops]
        if not {*names} <= BINARY.keys() or any(map(_stays_in_place, node.comparators[1:])):
            node.left = self.hook("compared", node, self.expression(node.left))
            others: list[ast.expr] = [self.hook("compared", node, self.expression(one)) for one in node.comparators]
            node.comparators = others
            return node
        left, right, *more = (self.expression(one) for one in (node.left, *node.comparators))
        if not more:
            return self.hook("compare", node, ast.Constant(names[0]), left, right)
        return self.hook("chain", node, ast.Constant(" ".join(names)), left, right, *map(_later, more))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.hook("attribute", node, self.expression(node.value), ast.Constant(self.mangled(node.attr)))

    def mangled(self, name: str) -> str:
        if self.class_name is None or not name.startswith("__") or name.endswith("__"):
            return name
        stripped = self.class_name.lstrip("_")
        return f"_{stripped}{name}" if stripped else name

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.hook("subscript", node, self.expression(node.value), self.index(node.slice))

    def index(self, node: ast.expr) -> ast.expr:
        """An index as an ordinary expression: `a:b` outside brackets is `slice(a, b, None)`."""
        if isinstance(node, ast.Slice):
            none = ast.Constant(None)
            parts = [self.expression(part) if part else none for part in (node.lower, node.upper, node.step)]
            return ast.copy_location(
                ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), "slice", ast.Load()), parts, []), node
            )
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.index(item) for item in node.elts], ast.Load()), node)
        return self.expression(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`x[i] = y` as a call of a hook, in the order in which Python evaluates: y, x, i."""
        target = stored_item(node)
        if target is None:
            return self.generic_visit(node)
        value = self.expression(node.value)
        stored = self.hook("store", target, value, self.expression(target.value), self.index(target.slice))
        return ast.copy_location(ast.Expr(stored), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        value = self.expression(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
            node.value = value
            return node
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        call = self.hook("inplace", node, ast.Constant(type(node.op).__name__), load, value)
        return ast.copy_location(ast.Assign([node.target], call), node)

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return self.hook("made", node, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        return self.hook("made", node, node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return self.hook("made", node, node)


def rewrite_function(node: ast.FunctionDef, class_name: str | None) -> ast.FunctionDef:
    if not is_plain(node) or node.name == "__getattribute__":  # the hooks themselves read attributes of objects
        return node
    body = _Body(class_name)
    has_docstring = ast.get_docstring(node, clean=False) is not None
    head, rest = node.body[:has_docstring], node.body[has_docstring:]
    enter = ast.copy_location(ast.Expr(body.hook("enter", node)), node)
    leave = ast.copy_location(ast.Expr(body.hook("leave", node)), node)
    if rest:
        node.body = [*head, enter, ast.copy_location(ast.Try(body.block(rest), [], [], [leave]), rest[0])]
    return node


def rewrite_class(node: ast.ClassDef) -> ast.ClassDef:
    node.body = [_rewrite_outer(statement, node.name) for statement in node.body]
    return node


def _rewrite_outer(node: ast.stmt, class_name: str | None) -> ast.stmt:
    if isinstance(node, ast.FunctionDef):
        return rewrite_function(node, class_name)
    if isinstance(node, ast.ClassDef):
        return rewrite_class(node)
    for name, value in _fields(node):  # definitions under `if` or `try` at module or class level
        items = cast("list[object]", value) if isinstance(value, list) else []
        if items and isinstance(items[0], ast.stmt):
            setattr(node, name, [_rewrite_outer(item, class_name) for item in cast("list[ast.stmt]", items)])
        for item in items:
            if isinstance(item, ast.ExceptHandler | ast.match_case):
                item.body = [_rewrite_outer(statement, class_name) for statement in item.body]
    return node


def rewrite_module(tree: ast.Module) -> ast.Module:
    """Rewrites a numbered tree in place."""
    tree.body = [_rewrite_outer(statement, None) for statement in tree.body]
    return ast.fix_missing_locations(tree)
