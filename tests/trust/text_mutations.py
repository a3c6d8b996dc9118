"""Small changes to the text of kernels and launchers, each of one kind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Sites = Callable[[ast.Module], Iterator[tuple[str, Callable[[], None]]]]
"""A copy of the module -> what each change is, and the change itself. A site makes one change to the copy."""


@dataclass(frozen=True)
class Mutant:
    kind: str
    what: str
    text: str


def mutants(text: str, kinds: Iterable[str] | None = None) -> dict[str, list[Mutant]]:
    """Kind -> every change of that kind. kinds: all of them where None"""
    original = ast.unparse(ast.parse(text))
    found: dict[str, list[Mutant]] = {}
    for kind in KINDS if kinds is None else kinds:
        sites = KINDS[kind]
        number = 0
        while True:
            module = ast.parse(text)
            chosen = next((site for at, site in enumerate(sites(module)) if at == number), None)
            if chosen is None:
                break
            number += 1
            what, change = chosen
            change()
            changed = ast.unparse(ast.fix_missing_locations(module))
            if changed != original:
                found.setdefault(kind, []).append(Mutant(kind, what, changed))
    return found


# --- where


def _functions(module: ast.Module, *, kernels: bool) -> Iterator[ast.FunctionDef]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and bool(node.decorator_list) == kernels:
            yield node


def _nodes(module: ast.Module, *, kernels: bool) -> Iterator[ast.AST]:
    for function in _functions(module, kernels=kernels):
        for statement in function.body:
            yield from ast.walk(statement)


def _calls(module: ast.Module, *names: str) -> Iterator[ast.Call]:
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield node


def _bodies(module: ast.Module, *, kernels: bool) -> Iterator[list[ast.stmt]]:
    for function in _functions(module, kernels=kernels):
        yield function.body
        for node in ast.walk(function):
            if isinstance(node, ast.For | ast.If) and node.body:
                yield node.body


def _launches(module: ast.Module) -> Iterator[ast.Call]:
    for node in _nodes(module, kernels=False):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            yield node


def _set(node: ast.AST, field: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, field, value)


def _put(values: list[ast.expr], at: int, value: ast.expr) -> Callable[[], None]:
    def change() -> None:
        values[at] = value

    return change


def _without(values: list[ast.stmt], at: int) -> Callable[[], None]:
    def change() -> None:
        values[at] = ast.Pass()

    return change


def _plus(node: ast.expr, number: int) -> ast.expr:
    return ast.BinOp(node, ast.Add() if number > 0 else ast.Sub(), ast.Constant(abs(number)))


# --- kinds


def _masks(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _calls(module, "tl.load", "tl.store"):
        for keyword in call.keywords:
            if keyword.arg == "mask":
                kept = [one for one in call.keywords if one.arg not in ("mask", "other")]
                yield f"{ast.unparse(call)[:60]} without its mask", _set(call, "keywords", kept)
                for node in ast.walk(keyword.value):
                    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
                        yield f"only {ast.unparse(node.left)}", _set(node, "right", node.left)
                        yield f"only {ast.unparse(node.right)}", _set(node, "left", node.right)
            if keyword.arg == "other":
                yield "another `other`", _set(keyword, "value", ast.Constant(1.0))


def _mask_bounds(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.GtE):
            said = ast.unparse(node)
            other = ast.LtE() if isinstance(node.ops[0], ast.Lt) else ast.Lt()
            yield f"{said}: another comparison", _set(node, "ops", [other])
            for step in (1, -1):
                yield f"{said}: {step:+}", _set(node, "comparators", [_plus(node.comparators[0], step)])


def _wheres(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _calls(module, "tl.where"):
        yield "tl.where: the second always", _set(call, "args", [call.args[0], call.args[1], call.args[1]])
        yield "tl.where: exchanged", _set(call, "args", [call.args[0], call.args[2], call.args[1]])


def _loops(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            start, stop, *step = node.iter.args
            one: ast.expr = step[0] if step else ast.Constant(1)
            args = node.iter.args
            yield "a loop that ends early", _put(args, 1, ast.BinOp(stop, ast.Sub(), one))
            yield "a loop that ends late", _put(args, 1, ast.BinOp(stop, ast.Add(), one))
            yield "a loop that begins late", _put(args, 0, ast.BinOp(start, ast.Add(), one))
            twice = ast.BinOp(one, ast.Mult(), ast.Constant(2))
            yield "a loop with twice the step", _set(node.iter, "args", [start, stop, twice])


def _strides(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for function in _functions(module, kernels=True):
        known = sorted({a.arg for a in function.args.args if a.annotation is not None and a.arg.isupper()})
        sizes = [name for name in known if "BLOCK" not in name and "LOG2E" not in name and name not in ("EPS", "SCALE")]
        for node in (n for statement in function.body for n in ast.walk(statement)):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store")):
                continue
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and isinstance(part.right, ast.Name):
                    own = part.right.id
                    yield f"a stride without {own}", _set(part, "right", ast.Constant(1))
                    for name in sizes:
                        if name != own:
                            yield f"a stride of {name} for {own}", _set(part, "right", ast.Name(name, ast.Load()))
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                    yield f"an address less {ast.unparse(part.right)}", _set(part, "right", ast.Constant(0))
                    yield "an address one further", _set(part, "right", _plus(part.right, 1))


def _constants(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _launches(module):
        for keyword in call.keywords:
            if not isinstance(keyword.value, ast.Constant) or keyword.arg in ("num_warps", "num_stages"):
                continue
            value = keyword.value.value
            if isinstance(value, float):
                for factor in (2.0, -1.0):
                    yield f"{keyword.arg} times {factor}", _set(keyword, "value", ast.Constant(value * factor))
            elif isinstance(value, int) and (keyword.arg or "").startswith("BLOCK"):
                yield f"{keyword.arg} twice as large", _set(keyword, "value", ast.Constant(value * 2))
                yield f"{keyword.arg} half as large", _set(keyword, "value", ast.Constant(max(1, value // 2)))
            elif isinstance(value, int):
                yield f"{keyword.arg} one less", _set(keyword, "value", ast.Constant(value - 1))
                yield f"{keyword.arg} one more", _set(keyword, "value", ast.Constant(value + 1))
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield f"{node.value} and a half", _set(node, "value", node.value + 0.5)


def _rescales(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for body in _bodies(module, kernels=True):
        for at, statement in enumerate(body):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Mult):
                yield f"without {ast.unparse(statement)}", _without(body, at)
            if isinstance(statement, ast.Assign) and ast.unparse(statement).startswith(("row_max =", "top =")):
                yield f"without {ast.unparse(statement)}", _without(body, at)
    for call in _calls(module, "tl.exp2", "tl.exp"):
        argument = call.args[0]
        if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Sub):
            yield "an exponential without its shift", _put(call.args, 0, argument.left)
            swapped = ast.BinOp(argument.right, ast.Sub(), argument.left)
            yield "an exponential of the other difference", _put(call.args, 0, swapped)
    for node in _nodes(module, kernels=True):
        if (
            isinstance(node, ast.Name)
            and node.id.startswith(("alpha", "weight", "shift"))
            and isinstance(node.ctx, ast.Load)
        ):
            yield f"{node.id} taken for row_max", _set(node, "id", "row_max")


def _maxima(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for one, other in (("tl.maximum", "minimum"), ("tl.max", "min"), ("tl.max", "sum"), ("tl.rsqrt", "sqrt")):
        for call in _calls(module, one):
            yield f"{other} for {one}", _set(call.func, "attr", other)
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.Constant) and node.value == "-inf":
            yield "inf for -inf", _set(node, "value", "inf")


def _accumulators(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _calls(module, "tl.zeros"):
        full = ast.parse(f"tl.full({ast.unparse(call.args[0])}, 1.0, tl.float32)", mode="eval").body
        yield "an accumulator that begins with 1", lambda call=call, full=full: call.__dict__.update(full.__dict__)
    for call in _calls(module, "tl.dot"):
        if len(call.args) > 2:
            yield "a product that does not add up", _set(call, "args", call.args[:2])
    for body in _bodies(module, kernels=True):
        for at, statement in enumerate(body):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
                last = ast.Assign([statement.target], statement.value)
                yield "the last alone", lambda body=body, at=at, last=last: body.__setitem__(at, last)
                yield "taken away", _set(statement, "op", ast.Sub())


def _reductions(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _calls(module, "tl.sum", "tl.max"):
        for keyword in call.keywords:
            if keyword.arg == "axis" and isinstance(keyword.value, ast.Constant):
                value = keyword.value.value
                yield "another axis", _set(keyword, "value", ast.Constant(1 - int(value)))
    for call in _calls(module, "tl.sum"):
        yield "max for tl.sum", _set(call.func, "attr", "max")


def _arithmetic(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    exchanged = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.BinOp) and type(node.op) in exchanged:
            yield f"{ast.unparse(node)[:50]}: another operator", _set(node, "op", exchanged[type(node.op)]())
    for call in _calls(module, "tl.dot"):
        yield "the operands of a product exchanged", _set(call, "args", [call.args[1], call.args[0], *call.args[2:]])


def _grids(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for call in _launches(module):
        assert isinstance(call.func, ast.Subscript)
        if isinstance(call.func.slice, ast.Tuple):
            for at, size in enumerate(call.func.slice.elts):
                for step in (1, -1):
                    if isinstance(size, ast.Constant) and int(size.value) + step > 0:
                        yield (
                            f"grid axis {at} {step:+}",
                            _put(call.func.slice.elts, at, ast.Constant(size.value + step)),
                        )
    for call in _calls(module, "tl.program_id"):
        axis = call.args[0]
        assert isinstance(axis, ast.Constant)
        for other in range(3):
            if other != axis.value:
                yield f"program_id({other}) for {axis.value}", _put(call.args, 0, ast.Constant(other))


def _casts(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for node in _nodes(module, kernels=True):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            inner = node.func.value
            yield f"{ast.unparse(node)[-40:]}: no cast", lambda node=node, inner=inner: _become(node, inner)
        if isinstance(node, ast.Attribute) and node.attr == "float32":
            yield "float16 for float32", _set(node, "attr", "float16")
    for node in _nodes(module, kernels=False):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("float16", "float32")
            and ast.unparse(node).startswith("torch.")
        ):
            yield (
                f"another type for {node.attr}",
                _set(node, "attr", "float32" if node.attr == "float16" else "float16"),
            )


def _become(node: ast.Call, other: ast.expr) -> None:
    """A call that is its argument."""
    node.func = ast.Attribute(ast.Name("tl", ast.Load()), "multiple_of", ast.Load())
    node.args, node.keywords = [other, ast.Constant(1)], []


def _order(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for body in _bodies(module, kernels=True):
        for at, statement in enumerate(body):
            if isinstance(statement, ast.If):
                yield "a guard less", _set(statement, "test", ast.Constant(value=True))
                if isinstance(statement.test, ast.Compare):
                    yield "a guard for another block", _set(statement.test, "comparators", [ast.Constant(1)])
            if isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("tl.store"):
                yield "a store less", _without(body, at)
    for body in _bodies(module, kernels=False):
        launches = [at for at, one in enumerate(body) if isinstance(one, ast.Expr)]
        for at in launches:
            yield "a launch less", _without(body, at)
        if len(launches) > 1:
            first, second = launches[:2]
            yield "launches exchanged", lambda body=body, a=first, b=second: _exchange(body, a, b)
    for call in _launches(module):
        for at in range(len(call.args) - 1):
            swapped = [*call.args]
            swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
            yield f"arguments {at} and {at + 1} exchanged", _set(call, "args", swapped)


def _exchange(body: list[ast.stmt], one: int, other: int) -> None:
    body[one], body[other] = body[other], body[one]


def _memory(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for node in _nodes(module, kernels=False):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "torch.empty"
            and isinstance(node.args[0], ast.Tuple)
        ):
            for at, size in enumerate(node.args[0].elts):
                if isinstance(size, ast.Constant) and int(size.value) > 1:
                    less = ast.Constant(size.value - 1)
                    yield f"dimension {at} of an allocation one less", _put(node.args[0].elts, at, less)
    for call in _calls(module, "tl.arange"):
        yield "a tile that begins at 1", _set(call, "args", [_plus(call.args[0], 1), _plus(call.args[1], 1)])


def _dispatches(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """Kernels that call those which are launched with them."""
    names = {function.name for function in _functions(module, kernels=True)}
    for function in _functions(module, kernels=True):
        calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Name) and call.func.id in names for call in calls):
            yield function


def _side_by_side(module: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    for function in _dispatches(module):
        branches: list[list[ast.stmt]] = []
        for node in ast.walk(function):
            if isinstance(node, ast.If):
                branches += [body for body in (node.body, node.orelse) if body and not isinstance(body[0], ast.If)]
                assert isinstance(node.test, ast.Compare)
                for step in (1, -1):
                    bound = _plus(node.test.comparators[0], step)
                    yield f"a bound {step:+}", _set(node.test, "comparators", [bound])
                yield "a bound that counts", _set(node.test, "ops", [ast.LtE()])
            if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
                for step in (1, -1):
                    if node.right.value + step > 0:
                        yield f"{ast.unparse(node)}: {step:+}", _set(node.right, "value", node.right.value + step)
        for at, body in enumerate(branches):
            yield "a part less", _without(body, 0)
            for other in branches[at + 1 :]:
                yield "parts exchanged", lambda body=body, other=other: _swap(body, other)
        for call in (node for body in branches for node in ast.walk(body[0]) if isinstance(node, ast.Call)):
            for at in range(len(call.args) - 1):
                swapped = [*call.args]
                swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
                yield f"arguments {at} and {at + 1} of a part exchanged", _set(call, "args", swapped)


def _swap(one: list[ast.stmt], other: list[ast.stmt]) -> None:
    one[:], other[:] = other[:], one[:]


KINDS: dict[str, Sites] = {
    "masks": _masks,
    "mask bounds": _mask_bounds,
    "choices": _wheres,
    "loops": _loops,
    "strides": _strides,
    "constants": _constants,
    "rescales": _rescales,
    "maxima": _maxima,
    "accumulators": _accumulators,
    "reductions": _reductions,
    "arithmetic": _arithmetic,
    "grid": _grids,
    "casts": _casts,
    "order": _order,
    "memory": _memory,
    "side by side": _side_by_side,
}
