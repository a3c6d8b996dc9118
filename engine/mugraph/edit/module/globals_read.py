"""Names of the file that conditions read: the kernel module looks them up, and the user's code does not pass them.

TorchScript cannot pass a function, a module or a global number on, and compiles the call of a test like any other.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import replace

from mugraph.plans.plan import RegionPlan


def with_looked_up(plan: RegionPlan, text: str) -> RegionPlan:
    """The plan, its conditions reading the file's global names where the kernel module has them (`_here['scale']`).

    text: of the file; where it is no Python, the plan is as it was
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return plan
    names = _bound(tree.body) - _locals(tree, plan.region.function)
    names -= {live_in.expression for live_in in plan.region.live_ins}
    guards = tuple(_looked_up(guard, names) for guard in plan.region.guards)
    return plan if guards == plan.region.guards else replace(plan, region=replace(plan.region, guards=guards))


def _bound(body: list[ast.stmt]) -> set[str]:
    """Names that a file binds at its top level."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            found |= _stored(node)
    return found


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _locals(tree: ast.Module, function: str) -> set[str]:
    """Names that the functions with this qualified name bind, and those around them."""
    last = function.rpartition(".")[2]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            node.name == last or any(isinstance(one, ast.FunctionDef) and one.name == last for one in ast.walk(node))
        ):
            found |= _stored(node) | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
            found |= {one.name for one in ast.walk(node) if isinstance(one, (ast.FunctionDef, ast.ClassDef))} - {last}
            imports = (one for one in ast.walk(node) if isinstance(one, (ast.Import, ast.ImportFrom)))
            found |= {(name.asname or name.name).partition(".")[0] for one in imports for name in one.names}
    return found


def _looked_up(guard: str, names: set[str]) -> str:
    try:
        tree = ast.parse(guard, mode="eval")
    except SyntaxError:  # entry.py says so
        return guard
    if not any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(tree)):
        return guard
    return ast.unparse(_Here(names).visit(tree))


class _Here(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = node.func
        self.generic_visit(node)
        if isinstance(called, ast.Name) and hasattr(builtins, called.id):  # conditions mean the built-in one
            node.func = called
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._names:
            return node
        return ast.Subscript(ast.Name("_here", ast.Load()), ast.Constant(node.id), node.ctx)
