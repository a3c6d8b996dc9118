"""The part of the shared runtime that prepares launches of kernels for a range of sizes.

Such a function reads sizes off its tensors, chooses among schedules by them, and launches with grids and memory that
depend on them. Of one way through its choices all else is known: that way is written as straight-line code, in which
sizes are still read at each call. It is for all sizes that take it; others take another one.
"""

from __future__ import annotations

SIZED = '''\
# Launches of sizes that vary, prepared: one way through the choices by size at a time
_WAYS = 64
"""How often a way is looked for, at most: that takes longer than a launch."""


class _Way(NamedTuple):
    """What a function does at some sizes. sizes: its lines that read these; tests: in which of them another way would
    be taken; text: the function without both; values: of the whole numbers, where this way was met"""

    sizes: list[ast.Assign]
    tests: list[str]
    text: ast.FunctionDef
    values: dict[str, int]

    @property
    def taken(self) -> str:
        return " and ".join(self.tests)


def _first_of_its_size(
    launch: str,
    ordinary: Callable[..., Any],
    laid: tuple[Any, ...],
    prepared: dict[int, Callable[..., Any]],
    ways: dict[tuple[int, str], int],
) -> Callable[..., Any]:
    """What an operator calls at sizes that are not prepared, and prepares the way that they take. prepared: by device;
    ways: by device, how often they were tried: those that are prepared are not again"""
    looked: list[int] = []

    def first(*tensors: torch.Tensor) -> Any:
        result, at = ordinary(*tensors), _place_of(tensors[0])
        if len(looked) >= _WAYS or not 0 <= at == _current_device() or _capturing():
            return result
        looked.append(at)
        try:
            way = _way_through(launch, tensors)
            tries = ways.get((at, way.taken), 0) + 1
            if tries <= _TRIES:
                ways[at, way.taken] = _TRIES  # what is tried now may ask for this again
                ready = _prepared_way(launch, at, prepared.get(at, first), laid, tries == _TRIES, way)
                if ready is not None and _same_bits(result, ready(*tensors)):
                    prepared[at] = ready
                else:
                    ways[at, way.taken] = tries
        except Exception:  # as no memory for a second result; the ordinary way has just worked
            pass
        return result

    return first


def _way_through(name: str, tensors: tuple[torch.Tensor, ...]) -> _Way:
    """Of these tensors, through the function `name`. What is no such function raises."""
    text = _text_of(name)
    way, body = _Way([], [], text, {}), list[ast.stmt]()
    given = dict(zip([one.arg for one in text.args.args], tensors))
    assert _follow(text.body, way, body, given, {})
    return way._replace(text=ast.FunctionDef(text.name, text.args, body, []))


def _prepared_way(
    name: str, device: int, ordinary: Callable[..., Any], laid: tuple[Any, ...], odd: bool, way: _Way
) -> Callable[..., Any] | None:
    """As `_prepared`, of one way. ordinary: what does the others"""
    _make_native()  # the guards of other regions are in C
    if _launch_at is None or _empty_on_gpu is None:
        return None
    try:
        return _Sized(way, name, device, ordinary, laid, odd).function()
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, OSError, SyntaxError):
        return None


def _follow(
    parts: list[ast.stmt], way: _Way, body: list[ast.stmt], given: dict[str, Any], said: dict[str, ast.expr]
) -> bool:
    """Adds what these lines do. said: the grid and the options of the next launch, where lines of their own say them.
    Whether they return"""
    for part in parts:
        match part:
            case ast.If(ast.Compare(ast.Name(size), [ast.LtE()], [ast.Constant(most)])):
                small = way.values[size] <= most
                way.tests.append(f"{size} {'<=' if small else '>'} {most}")
                if _follow(part.body if small else part.orelse, way, body, given, said):
                    return True
            case ast.Assign([ast.Name("grid" | "schedule" as what)], value):
                said[what] = value
            case ast.Assign([ast.Name(size)], value) if _is_number(value, given, way.values):
                assert size not in given and way.values.get(size) is None  # it is what it is from now on
                way.sizes.append(part)
                way.values[size] = _value(value, given, way.values)
            case _:
                assert not isinstance(part, (ast.If, ast.For, ast.While, ast.With, ast.Try))
                body.append(_with_said(part, said))
                if isinstance(part, ast.Return):
                    return True
    return False


def _with_said(part: ast.stmt, said: dict[str, ast.expr]) -> ast.stmt:
    """`kernel[grid](..., **schedule)` with what they are."""
    match part:
        case ast.Expr(ast.Call(ast.Subscript(kernel, grid), args, keywords)):
            if isinstance(grid, ast.Name):
                grid = said[grid.id]
            every = list[ast.keyword]()
            for one in keywords:
                options = said[one.value.id] if one.arg is None else None
                every += options.keywords if options is not None else [one]
            return ast.Expr(ast.Call(ast.Subscript(kernel, grid, ast.Load()), args, every))
    return part


def _is_number(node: ast.expr, given: dict[str, Any], values: dict[str, int]) -> bool:
    try:
        return type(_value(node, given, values)) is int
    except AssertionError:
        return False


def _value(node: ast.expr, given: dict[str, Any], values: dict[str, int]) -> int:
    """Of a whole number: arithmetic of sizes."""
    match node:
        case ast.Constant(int() as number):
            return number
        case ast.Name(name) if name in values:
            return values[name]
        case ast.Call(ast.Attribute(ast.Name(name), "numel"), [], []) if name in given:
            return given[name].numel()
        case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(int() as at)) if name in given:
            return given[name].shape[at]
        case ast.Call(ast.Attribute(ast.Name("triton"), "cdiv"), [one, by], []):
            return -(-_value(one, given, values) // _value(by, given, values))
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() as sign, right):
            one, other = _value(left, given, values), _value(right, given, values)
            return _SIGNS[type(sign)](one, other)
    raise AssertionError(ast.dump(node))


_SIGNS: dict[type, Callable[[int, int], int]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: lambda one, other: one // other,
}


class _AsNumbers(ast.NodeTransformer):
    """`triton.cdiv(a, b)`, which takes longer than a kernel to launch, as the division that it is."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("triton"), "cdiv"), [one, by], []):
                down = ast.BinOp(ast.UnaryOp(ast.USub(), one), ast.FloorDiv(), by)
                return ast.UnaryOp(ast.USub(), down)
        return node


def _as_numbers(node: ast.AST) -> str:
    copied = ast.parse(ast.unparse(node))
    return ast.unparse(_AsNumbers().visit(copied))


class _Sized(_Straight):
    """One way, as a function that asks whether a call takes it."""

    def __init__(self, way: _Way, *given: Any) -> None:
        self.way = way
        super().__init__(*given, way.text, tuple(way.values))

    def _first(self) -> list[str]:
        most = [f"{one} < {2**31}" for one in self.numbers]
        tests = [*self.way.tests, *most, *(f"0 < {grid} < {2**31}" for grid in self.grids)]
        sizes = [f"    {_as_numbers(one)}" for one in self.way.sizes]
        called = f"_ordinary({', '.join(self.parameters)})"
        return [*sizes, f"    if not ({' and '.join(tests)}):", f"        return {called}", *super()._first()]

    def _scratch(self) -> list[str]:
        """Lines that make all scratch at once, one tensor behind the other: it has another length at each size."""
        lines, end = list[str](), "0"
        for name in self.scratch:
            shape, dtype = self.made[name]
            self.known[name] = f"_scratch_at + {end}"
            size = " * ".join([str(dtype.itemsize), *(f"({one})" for one in shape)])
            lines.append(f"_to_{name} = {end} + -(-({size}) // {_SCRATCH}) * {_SCRATCH}")
            end = f"_to_{name}"
        made = f"_scratch = _empty(({end},), (1,), {self._hold('_type', torch.uint8)})"
        return [*lines, made, "_scratch_at = _at(_scratch)"] if lines else []

    @property
    def grids(self) -> list[str]:
        """How many blocks each launch has, where that is no number."""
        sides = [across for _, across, *_ in self.launches]
        return [" * ".join(f"({one})" for one in grid) for grid in sides if any(type(one) is str for one in grid)]

    def _row_major(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        if all(type(one) is int for one in shape):
            return super()._row_major(shape)
        return tuple([" * ".join([f"({one})" for one in shape[at:]]) or 1 for at in range(1, len(shape) + 1)])

    def _shape(self, node: ast.expr) -> tuple[Any, ...]:
        return tuple([self._number(one) for one in node.elts])

    def _grid(self, node: ast.expr) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        met = tuple([_value(one, {}, self.way.values) for one in node.elts])
        return met, tuple([self._number(one) for one in node.elts])

    def _number(self, node: ast.expr) -> int | str:
        return node.value if isinstance(node, ast.Constant) else _as_numbers(node)
'''
