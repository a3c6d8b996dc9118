"""The first tiles of tensors that a kernel reads, asked for before it waits: they come into the second-level cache.

Nothing is read by that: whatever is written there later, by whom ever, is what a load finds. So it may be done before
the wait whether or not the tensor is known to be there. A weight, which nobody writes, is then in the cache when the
wait is over.

The text is found in the kernel's own: an address is asked for as it is loaded from, once for each sector of memory.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy

from mugraph.codegen.tile.text import wrapped

ASM = "prefetch.global.L2 [$1]; // $0"
"""The result is not used; a tile operator has one."""
SECTOR = 32
"""Bytes of the second-level cache that come at once, at least."""
_TILE, _DEPTH = "asked_ptrs", 2
_INDEXING = frozenset({"tl.arange", "tl.program_id"})


def prefetches(
    function: ast.FunctionDef,
    begin: int,
    itemsizes: Mapping[str, int],
    constants: Mapping[str, int | float],
    tiles: int,
) -> list[str]:
    """Lines for the place before statement `begin` of a kernel.

    itemsizes: pointers of the tensors that are asked for -> bytes of an element
    tiles:     of a loop, the first so many
    """
    known = {one.arg for one in function.args.args} | _assigned(function.body[:begin])
    before = dict(_assignments(function.body[:begin]))
    lines: list[str] = []
    for statement in function.body[begin:]:
        if isinstance(statement, ast.For):
            lines += _of_loop(statement, known, before, itemsizes, constants, tiles)
            break
        for address, size in _addresses([statement], itemsizes):
            if _names(address) <= known:
                lines += _asked(address, before, size, constants)
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    name = next(name for name in (_TILE, *(f"{_TILE}_{at}" for at in range(len(taken)))) if name not in taken)
    return [f"    {line.replace(_TILE, name)}" for line in lines]


def _of_loop(
    loop: ast.For,
    known: Collection[str],
    before: Mapping[str, ast.expr],
    itemsizes: Mapping[str, int],
    constants: Mapping[str, int | float],
    tiles: int,
) -> list[str]:
    match loop.target, loop.iter:
        case ast.Name(index), ast.Call(ast.Name("range"), [ast.Constant(0), ast.Name(end), *steps]):
            step = steps[0] if steps else ast.Constant(1)
        case _:
            return []
    width = constants.get(step.id) if isinstance(step, ast.Name) else 1
    if end not in constants or not isinstance(width, int):
        return []
    inside = {name: value for name, value in _assignments(loop.body) if _is_index(value)}
    found: list[str] = []
    for address, size in _addresses(loop.body, itemsizes):
        whole = _resolved(address, inside)  # in the order of the body, each is made of those before
        if _names(whole) <= {*known, index}:
            found += _asked(whole, before, size, constants)
    count = min(tiles, -(-int(constants[end]) // width))
    if not found:
        return []
    return [
        f"for {index} in tl.static_range(0, {count} * {ast.unparse(step)}, {ast.unparse(step)}):",
        *(f"    {line}" for line in found),
    ]


def _addresses(body: Sequence[ast.stmt], itemsizes: Mapping[str, int]) -> Iterator[tuple[ast.expr, int]]:
    """That are loaded from without a mask, by statements of the body itself."""
    for statement in body:
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Call(ast.Attribute(ast.Name("tl"), "load"), [address], keywords) if not any(
                    one.arg == "mask" for one in keywords
                ):
                    pointers = _names(address) & itemsizes.keys()
                    if len(pointers) == 1:
                        yield address, itemsizes[pointers.pop()]
                case _:
                    pass


def _asked(
    address: ast.expr, before: Mapping[str, ast.expr], size: int, constants: Mapping[str, int | float]
) -> list[str]:
    tiles = {name: value for name, value in before.items() if _is_index(value) and "tl.arange" in ast.unparse(value)}
    address = _by_sector(_resolved(address, tiles), max(1, SECTOR // size), constants)
    call = f'tl.inline_asm_elementwise("{ASM}", "=r,l", [{_TILE}], dtype=tl.int32, is_pure=False, pack=1)'
    lines = [*wrapped(f"{_TILE} = {ast.unparse(address)}", _DEPTH), *wrapped(call, _DEPTH)]
    return [line[4 * _DEPTH :] for line in lines]


def _by_sector(address: ast.expr, step: int, constants: Mapping[str, int | float]) -> ast.expr:
    """Where the elements of a term of the address are neighbours in memory, only each `step`-th of them."""
    terms = list(_terms(address))
    for term in terms:
        for node in ast.walk(term):
            match node:
                case ast.Call(ast.Attribute(ast.Name("tl"), "arange"), [ast.Constant(0), ast.Name(width)]):
                    size = constants.get(width)
                    whole = isinstance(size, int) and size % step == 0 and size >= step
                    if step > 1 and whole and _is_alone(term):
                        node.args[1] = _parsed(f"{width} // {step}")
                        return _Scaled(node, step).visit(address)
                case _:
                    pass
    return address


class _Scaled(ast.NodeTransformer):
    def __init__(self, node: ast.Call, step: int) -> None:
        self._node, self._step = node, step

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if node is self._node:
            return ast.BinOp(node, ast.Mult(), ast.Constant(self._step))
        self.generic_visit(node)
        return node


def _is_alone(term: ast.expr) -> bool:
    """Is the term one of places, by which nothing is multiplied?"""
    while isinstance(term, ast.Subscript):
        term = term.value
    return all(_is_place(one) for one in _terms(term))


def _is_place(term: ast.expr) -> bool:
    match term:
        case ast.Call(ast.Attribute(ast.Name("tl"), "arange")) | ast.Name():
            return True
        case ast.BinOp(_, ast.Mult(), _):
            return not any(isinstance(node, ast.Call) and _called(node) == "tl.arange" for node in ast.walk(term))
        case _:
            return False


def _terms(expression: ast.expr) -> Iterator[ast.expr]:
    match expression:
        case ast.BinOp(left, ast.Add(), right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield expression


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                yield name, value
            case _:
                pass


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    return {name for name, _ in _assignments(body)}


def _is_index(value: ast.expr) -> bool:
    return all(_called(node) in _INDEXING for node in ast.walk(value) if isinstance(node, ast.Call))


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _resolved(expression: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """With what names of indices stand for."""
    return _Resolved(values).visit(deepcopy(expression))


class _Resolved(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return node if value is None else self.visit(deepcopy(value))


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {"tl"}


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
