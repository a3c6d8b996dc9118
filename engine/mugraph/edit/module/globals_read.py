"""Names of the file that conditions read: the kernel module looks them up, and the user's code does not pass them.

TorchScript cannot pass a function, a module or a global number on, and compiles the call of a test like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from mugraph.edit.module.expressions import expression_of, renamed
from mugraph.plans.plan import RegionPlan


def with_looked_up(plan: RegionPlan, text: str) -> RegionPlan:
    """The plan, its conditions reading the file's global names where the kernel module has them (`_here['scale']`).

    text: of the file; where it is no Python, the plan is as it was
    """
    names = _globals_in(text, plan.region.function) - {live_in.expression for live_in in plan.region.live_ins}
    here = {name: f"_here[{name!r}]" for name in names}
    guards = tuple(_looked_up(guard, here) for guard in plan.region.guards)
    return plan if guards == plan.region.guards else replace(plan, region=replace(plan.region, guards=guards))


@lru_cache(64)
def _globals_in(text: str, function: str) -> frozenset[str]:
    """Names of a file that mean its own in the functions with this qualified name. It is asked for every plan."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(_bound(tree.body) - _locals(tree, function))


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


def _looked_up(guard: str, here: Mapping[str, str]) -> str:
    try:
        reads = any(node.id in here for node in expression_of(guard).names)
    except SyntaxError:  # entry.py says so
        return guard
    return renamed(guard, here) if reads else guard
