"""The conditions of a region as straight-line code: no call for a module, nor for a number."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from mugraph.edit.module.expressions import expression_of
from mugraph.ir.ran import Ran

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_BEFORE_FORWARD = ("_call_impl", "_compiled_call_impl")
"""What `torch.nn.Module.__call__` reads of a module before its `forward`."""
_CONTAINERS = "torch.nn.modules.container"
"""Its classes have as many parts as stand in `_modules`."""
_FEW = 4
"""Items of a tuple whose types are compared one by one."""


def straight(guard: str, ran: Mapping[str, Ran]) -> list[str]:
    """A condition as a list of simpler ones, all of which must hold. A condition on a function's code becomes none: one
    call of `_same_code` checks all of a region's classes and functions. Numbers are equal only if their types are."""
    found = expression_of(guard)
    match found.tree:
        case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]):
            return _of_module(found.of(module), ran.get(what, Ran()))
        case ast.Call(ast.Name("_runs"), [_, ast.Constant(str())]):
            return []
        case ast.Compare(left, [ast.Eq()], [right]) if not isinstance(left, ast.Call):
            return _equal(found.of(left), right)
        case ast.Compare(left, [ast.In()], [ast.Tuple(elts)]) if not isinstance(left, ast.Call):
            either = [" and ".join(_equal(found.of(left), one)) for one in elts]
            return [" or ".join(f"({one})" for one in either)]
        case _:
            return [guard]


def lasting(guard: str, modules: Mapping[str, Ran]) -> bool:
    """Whether a condition that holds once stays true until a dictionary of these modules, or one of their classes,
    changes: whether all that it compares lies in those dictionaries or cannot change.

    modules: expressions of modules that are known to be of the classes that were analysed
    """
    found = expression_of(guard)
    match found.tree:
        case ast.Call(ast.Name("_is"), [module, ast.Constant(str())]):
            return found.of(module) in modules
        case ast.Compare(
            ast.Subscript(ast.Attribute(module, "_parameters"), ast.Constant(str())),
            [ast.Eq() | ast.Is()],
            [ast.Constant(None)],
        ) if found.of(module) in modules:
            return True
        case ast.Compare(ast.Call(ast.Name("len"), [module]), [ast.Eq()], [ast.Constant(int())]):
            held = modules.get(found.of(module))
            return held is not None and held.library == _CONTAINERS
        case ast.Compare(ast.Attribute(module, name), [ast.Eq()], [right]):
            return _is_plain(name, modules.get(found.of(module))) and not _equal("it", right)[0].startswith("_equals")
        case ast.Compare(ast.Attribute(module, name), [ast.Is()], [ast.Constant()]):
            return _is_plain(name, modules.get(found.of(module)))
        case ast.Compare(ast.Attribute(module, name), [ast.In()], [ast.Tuple(elts)]):
            return _is_plain(name, modules.get(found.of(module))) and all(map(_cannot_change, elts))
        case _:
            return False


def _cannot_change(constant: ast.expr) -> bool:
    """Whether what is the same constant stays so."""
    return not _equal("it", constant)[0].startswith("_equals")


def _is_plain(name: str, ran: Ran | None) -> bool:
    """Whether an attribute is what a module or its class keeps under that name."""
    return ran is not None and name not in ran.properties and not (name.startswith("__") and name.endswith("__"))


def _of_module(module: str, ran: Ran) -> list[str]:
    """Nothing is hooked into a module, and it has nothing of its own before its class's methods or its parts."""
    own = f"{module}.__dict__"
    hidden = [*_BEFORE_FORWARD, *sorted({*ran.methods, *ran.parts})]
    return [
        *none_of([f"{own}[{name!r}]" for name in _HOOKS], 2),
        *none_of([f"{name!r} in {own}" for name in hidden], 3),
    ]


def none_of(things: Sequence[str], at_once: int) -> list[str]:
    """Conditions that none of the things is true, some at once."""
    groups = [things[first : first + at_once] for first in range(0, len(things), at_once)]
    return [f"not ({' or '.join(group)})" for group in groups]


def _equal(left: str, right: ast.expr) -> list[str]:
    """Conditions for equality: 1, 1.0 and True are not the same, nor is a tensor that holds it."""
    match right:
        case ast.Constant(bool() | None):
            return [f"{left} is {right.value!r}"]
        case ast.Constant(int() | float() | str() as value):
            return [f"type({left}) is {type(value).__name__} and {left} == {value!r}"]
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return [f"type({left}) is {type(value).__name__} and {left} == -{value!r}"]
        case ast.Tuple(elts) if len(elts) <= _FEW and all(isinstance(one, ast.Constant) for one in elts):
            values = ast.literal_eval(right)
            kinds = [f"type({left}[{at}]) is {type(value).__name__}" for at, value in enumerate(values)]
            if values and all(type(value) in (int, float, str) for value in values):
                return [f"type({left}) is tuple and {left} == {values!r}", " and ".join(kinds)]
        case _:
            pass
    return [f"_equals({left}, {ast.unparse(right)})"]
