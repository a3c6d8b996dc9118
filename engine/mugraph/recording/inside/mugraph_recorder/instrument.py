"""Every function gets a first statement that shows its arguments to the recorder.

`def f(x, *rest)` begins with `if not __mugraph_traced__() and __mugraph_seen__[7]: __mugraph_seen__[7](x, rest)`. Both
names are builtins, so the module's own names stay what they are; the first is how dynamo is told to pass the statement
by (`torch.export(strict=True)` reads bytecode). The statement stands after the docstring, on the line of the `def`, so
that line numbers in tracebacks stay right; and once a slot is None the function costs some 50 ns more than it did.

The rest of the function stands in `try: ... finally: if not __mugraph_traced__() and __mugraph_open__[-1] == 7:
__mugraph_end__()`, which ends the timing of a call that is timed. Generators and coroutines, which stop and go on, are
not timed.

Left alone are functions in functions, lambdas, static and class methods and properties, which no `# mugraph:` comment
can describe, and functions whose decorator compiles their bytecode.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SLOTS = "__mugraph_seen__"
TRACED = "__mugraph_traced__"
OPEN = "__mugraph_open__"
END = "__mugraph_end__"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEFT_ALONE = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "overload", "jit", "njit", "vectorize",
     "guvectorize", "cfunc", "stencil", "script"}
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """kind: "one", or "many" of `*args`, or "named" of `**kwargs`. default: its source, None where it has none."""

    name: str
    kind: str = "one"
    default: str | None = None


@dataclass(frozen=True)
class Signature:
    """Of one function of the user's. name: qualified ("Block.forward"). owner: the class, for a method, whose `self`
    is the first value that is shown. timed: it says when it ends."""

    file: str
    name: str
    owner: str | None
    parameters: tuple[Parameter, ...]
    timed: bool = False


def instrument(text: str | bytes, file: str, register: Callable[[Signature], int]) -> ast.Module:
    """The module's tree with the statements. register: gives a function its slot. Raises SyntaxError or ValueError."""
    tree = ast.parse(text, filename=file)
    for function, name, owner in _functions(tree.body, "", None):
        signature = _signature(function, file, name, owner)
        if signature is not None:
            _show(function, register(signature), signature.timed)
    return tree


def _functions(
    body: list[ast.stmt], prefix: str, owner: ast.ClassDef | None
) -> Iterator[tuple[Function, str, ast.ClassDef | None]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, prefix + node.name, owner
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.", node)
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, field, []), prefix, owner)
            for handler in getattr(node, "handlers", []):
                yield from _functions(handler.body, prefix, owner)


def _signature(function: Function, file: str, name: str, owner: ast.ClassDef | None) -> Signature | None:
    """None for one that is left alone."""
    if any(_last_name(decorator) in _LEFT_ALONE for decorator in function.decorator_list):
        return None
    if owner is not None and function.name.startswith("__") and function.name not in ("__init__", "__call__"):
        return None  # __getattr__ and its like are no place to search
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    if owner is not None and not plain:
        return None
    without = len(plain) - len(arguments.defaults)
    found = [
        _parameter(argument, arguments.defaults[number - without] if number >= without else None)
        for number, argument in enumerate(plain)
    ][1 if owner is not None else 0 :]
    found += [
        _parameter(one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.vararg is not None:
        found.append(Parameter(arguments.vararg.arg, "many"))
    if arguments.kwarg is not None:
        found.append(Parameter(arguments.kwarg.arg, "named"))
    if not found and function.name != "__init__":
        return None
    of = name.rpartition(".")[0] if owner is not None else None
    return Signature(file, name, of, tuple(found), _can_be_timed(function))


def _parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    return Parameter(argument.arg, "one", ast.unparse(default) if default is not None else None)


def _can_be_timed(function: Function) -> bool:
    if isinstance(function, ast.AsyncFunctionDef) or function.name == "__init__":
        return False
    rest = function.body[_first_statement(function) :]
    return bool(rest) and not any(map(_yields, rest))


def _yields(node: ast.AST) -> bool:
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    return any(map(_yields, ast.iter_child_nodes(node)))


def _first_statement(function: Function) -> int:
    return 1 if ast.get_docstring(function, clean=False) is not None else 0


def _show(function: Function, slot: int, timed: bool) -> None:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = [argument.arg for argument in (*plain, arguments.vararg, arguments.kwarg) if argument is not None]
    place, at = f"{SLOTS}[{slot}]", _first_statement(function)
    looks = _parsed(f"if not {TRACED}() and {place}: {place}({', '.join(names)})", function)
    rest = function.body[at:]
    if timed:
        ends = _parsed(f"if not {TRACED}() and {OPEN}[-1] == {slot}: {END}()", function)
        whole = ast.copy_location(ast.Try(rest, [], [], [ends]), function)
        whole.end_lineno, whole.end_col_offset = whole.lineno, whole.col_offset
        rest = [whole]
    function.body[at:] = [looks, *rest]


def _parsed(text: str, function: Function) -> ast.stmt:
    """On the line of the `def`."""
    [statement] = ast.parse(text).body
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = function.lineno
            node.col_offset = node.end_col_offset = function.col_offset
    return statement


def _last_name(decorator: ast.expr) -> str:
    """ "jit" of `@numba.jit(parallel=True)`."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
