"""Faults in the text of kernels for a size in a range. Many are right at the sizes that are tested."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from math import gcd

from tests.trust.text_mutations import Mutant
from tests.trust.text_mutations import mutants as plain_mutants

PLAIN = ("masks", "mask bounds", "loops", "strides", "grid", "memory")
"""Kinds of text_mutations.py: wrong at all sizes, as a rule."""

Form = tuple[str, Callable[[str], str]]


def forms(tested: Sequence[int]) -> list[Form]:
    """Expressions that are the size at all tested sizes, and not at others."""
    step = 0
    for one in tested:
        step = gcd(step, one - tested[0])
    found: list[Form] = []
    for d in (n for n in range(2, step + 1) if step % n == 0):
        rest = tested[0] % d
        up = d - 1 - rest
        found += [
            (f"rounded down to {d}s and {rest}", lambda s, d=d, rest=rest: f"({s} // {d} * {d} + {rest})"),
            (
                f"rounded up to {d}s and {rest}",
                lambda s, d=d, rest=rest, up=up: f"(({s} + {up}) // {d} * {d} + {rest})",
            ),
            (f"more by the rest of {d}s", lambda s, d=d, rest=rest: f"({s} + {s} % {d} - {rest})"),
        ]
    largest = max(tested)
    found.append(("at most the largest", lambda s: f"{{min}}({s}, {largest})"))
    return found


def mutants(
    text: str, tested: Sequence[int], sizes: Sequence[str], arguments: Sequence[str]
) -> dict[str, list[Mutant]]:
    """Kind -> changes. sizes: variables of the launcher. arguments: of the kernels, that are sizes"""
    found = {kind: list(own) for kind, own in plain_mutants(text, PLAIN).items()}
    for said, form in forms(tested):
        for place, what, changed in _places(text, sizes, arguments, form):
            found.setdefault(place, []).append(Mutant(place, f"{what}: {said}", changed))
    for what, changed in _rows(text):
        found.setdefault("rows", []).append(Mutant("rows", what, changed))
    for what, changed in _parts(text):
        found.setdefault("parts", []).append(Mutant("parts", what, changed))
    return found


def _places(
    text: str, sizes: Sequence[str], arguments: Sequence[str], form: Callable[[str], str]
) -> Iterator[tuple[str, str, str]]:
    """Every place at which a size is read, with another expression there."""
    count = sum(1 for _ in _names(ast.parse(text), sizes, arguments))
    for at in range(count):
        module = ast.parse(text)
        kind, parent, field, index, name, smaller = list(_names(module, sizes, arguments))[at]
        new = ast.parse(form(name).replace("{min}", smaller), mode="eval").body
        what = ast.unparse(parent)[:50]
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index] = new
        yield kind, what, ast.unparse(ast.fix_missing_locations(module))


_Site = tuple[str, ast.AST, str, int | None, str, str]


def _names(module: ast.Module, sizes: Sequence[str], arguments: Sequence[str]) -> Iterator[_Site]:
    for function in module.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        kernel = bool(function.decorator_list)
        known, smaller = (arguments, "tl.minimum") if kernel else (sizes, "min")
        for statement in function.body:
            for parent in ast.walk(statement):
                for field, value in ast.iter_fields(parent):
                    each = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
                    for index, one in each:
                        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in known:
                            yield _kind(kernel, parent, statement), parent, field, index, one.id, smaller


def _kind(kernel: bool, parent: ast.AST, statement: ast.stmt) -> str:
    if not kernel:
        said = ast.unparse(statement)
        if "torch.empty" in said:
            return "size of an allocation"
        return "size of a grid" if "cdiv" in ast.unparse(parent) or isinstance(parent, ast.Tuple) else "size passed on"
    if isinstance(parent, ast.Compare):
        return "size in a mask"
    if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "range":
        return "size in a loop"
    if any(isinstance(one, ast.Compare) and parent in ast.walk(one) for one in ast.walk(statement)):
        return "size in a mask"
    return "size in a stride" if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult) else "size elsewhere"


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """The sizes up to which a schedule is taken, and blocks of one schedule."""

    def tests(module: ast.Module) -> list[ast.Compare]:
        return [n.test for n in ast.walk(module) if isinstance(n, ast.If) and isinstance(n.test, ast.Compare)]

    def numbers(module: ast.Module) -> list[ast.keyword]:
        calls = [n for n in ast.walk(module) if isinstance(n, ast.Call) and ast.unparse(n.func) == "dict"]
        return [k for call in calls for k in call.keywords if (k.arg or "").startswith("BLOCK")]

    for at in range(len(tests(ast.parse(text)))):
        for step in (-3, -1, 1, 3, 7):
            module = ast.parse(text)
            limit = tests(module)[at].comparators[0]
            if isinstance(limit, ast.Constant) and isinstance(limit.value, int):
                limit.value += step
                yield f"a schedule up to {limit.value}", ast.unparse(module)
    for at in range(len(numbers(ast.parse(text)))):
        for factor in (0.5, 2):
            module = ast.parse(text)
            value = numbers(module)[at].value
            if isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value * factor >= 1:
                value.value = int(value.value * factor)
                yield f"{numbers(module)[at].arg} = {value.value} in one schedule", ast.unparse(module)


_COUNT = ("{0} + 1", "{0} - 1", "max(1, {0} - 1)", "max(1, {0} // 2)", "2 * {0}")
_LENGTH = ("{0} + 1", "{0} - 1", "{0} + 16", "{0} // 2", "2 * {0}")


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """How many parts of an axis there are, how long one is, where it ends, and how many of them are joined."""
    counts = list(_counts(ast.parse(text)))
    for at in range(len(list(_part_sites(ast.parse(text), counts)))):
        site = list(_part_sites(ast.parse(text), counts))[at]
        for form in site[3]:
            module = ast.parse(text)
            parent, field, index, _ = list(_part_sites(module, counts))[at]
            value = getattr(parent, field) if index is None else getattr(parent, field)[index]
            new = ast.parse(form.format(ast.unparse(value)), mode="eval").body
            if index is None:
                setattr(parent, field, new)
            else:
                getattr(parent, field)[index] = new
            yield f"{ast.unparse(value)} is {ast.unparse(new)}", ast.unparse(ast.fix_missing_locations(module))


_Part = tuple[ast.AST, str, int | None, tuple[str, ...]]


def _counts(module: ast.Module) -> Iterator[str]:
    """Variables of a launcher that say how many parts there are."""
    for node in ast.walk(module):
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(func)) if ast.unparse(func) == "triton.cdiv":
                yield name
            case _:
                pass


def _part_sites(module: ast.Module, counts: Sequence[str]) -> Iterator[_Part]:
    for parent in ast.walk(module):
        for field, value in ast.iter_fields(parent):
            for index, one in list(enumerate(value)) if isinstance(value, list) else [(None, value)]:
                match one:
                    case ast.Call(func) if ast.unparse(func) == "triton.cdiv" and isinstance(parent, ast.Assign):
                        yield parent, field, index, _COUNT
                    case ast.Name(name, ast.Load()) if name in counts:
                        yield parent, field, index, _COUNT
                    case ast.Name(name, ast.Load()) if name.startswith("PART_"):
                        yield parent, field, index, _LENGTH
                    case ast.Constant(int()) if isinstance(parent, ast.keyword) and "PART_" in (parent.arg or ""):
                        yield parent, field, index, _LENGTH
                    case ast.Constant(int()) if isinstance(parent, ast.Assign) and _names_a_part(parent):
                        yield parent, field, index, _LENGTH
                    case _:
                        pass


def _names_a_part(line: ast.Assign) -> bool:
    return isinstance(line.targets[0], ast.Name) and line.targets[0].id.endswith("_part")
