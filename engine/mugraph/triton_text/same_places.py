"""May a kernel write over what it reads? The text says so, where each element is read by the block that writes it, and
before it is written.

It is asked of kernels whose memory has been found to be in order: no element is written by two blocks. So it is enough
that a block reads, of a tensor that is written over, just the places that it writes, and that all it reads has arrived
before it writes anything: a barrier stands between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

BARRIER = "tl.debug_barrier()"
"""All threads of a block wait here for one another, and what they read and wrote before is done."""
_LOAD, _STORE = "tl.load", "tl.store"
_KEYWORDS = frozenset({"mask", "other", "eviction_policy", "cache_modifier"})
_OTHERS = ("atomic", "asm", "descriptor", "block_ptr", "barrier", "gdc", "extern", "async", "map_elementwise")
"""Parts of the names of functions that read or write memory, or wait, in another way."""


def why_not_over(jit: str, pointers: Mapping[str, str]) -> str | None:
    """Why a kernel may not write over what it reads, in a clause; None where it may.

    jit:      its text, with the functions that it calls
    pointers: a parameter through which it writes -> that through which it reads the same memory
    """
    try:
        kernel, *others = _functions(jit)
        _check_order(kernel)
        for other in others:
            _check_pure(other)
        for written, read in pointers.items():
            _check_places(kernel, written, read)
    except _Not as error:
        return str(error)
    return None


def stores_last(jit: str) -> str:
    """The kernel's text with all that it stores stored at its end, behind a barrier. Raises ValueError where it is more
    than straight-line code, in which each name has one value."""
    try:
        kernel = _functions(jit)[0]
        _check_straight(kernel)
    except _Not as error:
        raise ValueError(str(error)) from None
    lines = jit.splitlines()
    spans = [(node.lineno - 1, node.end_lineno or node.lineno) for node in kernel.body if _stores(node)]
    stored = [line for first, end in spans for line in lines[first:end]]
    moved = {at for first, end in spans for at in range(first, end)}
    end = kernel.end_lineno or len(lines)
    barrier = f"    {BARRIER}  # what is written over has been read"
    kept = [line for at, line in enumerate(lines[:end]) if at not in moved]
    return "\n".join([*kept, barrier, *stored, *lines[end:]])


class _Not(Exception):
    """Why not."""


def _functions(jit: str) -> list[ast.FunctionDef]:
    """The kernel, which is the first that no other calls, and then all others."""
    found = [node for node in ast.parse(jit).body if isinstance(node, ast.FunctionDef)]
    called = {name for node in found for name in _called(node)}
    kernels = [node for node in found if node.name not in called]
    if len(kernels) != 1:
        raise _Not("its text has several kernels")
    return [kernels[0], *(node for node in found if node is not kernels[0])]


def _called(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            yield ast.unparse(one.func)


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _stores(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_call(node.value, _STORE)


def _is_barrier(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node) == BARRIER


def _check_pure(node: ast.FunctionDef) -> None:
    """A function that the kernel calls touches no memory."""
    for name in _called(node):
        if name in (_LOAD, _STORE) or any(part in name for part in _OTHERS):
            raise _Not(f"{node.name} calls {name}")


def _check_straight(kernel: ast.FunctionDef) -> None:
    """One statement after the other, each name with one value."""
    parameters = [one.arg for one in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)]
    bound = set(parameters)
    for node in kernel.body:
        match node:
            case ast.Assign([ast.Name(name)]) if name not in bound:
                bound.add(name)
            case ast.Expr(ast.Constant()):
                pass
            case _ if _stores(node) or _is_barrier(node):
                pass
            case _:
                raise _Not(f"line {node.lineno} is more than a value that is computed once, or stored")
        wrong = [name for name in _called(node) if name == _STORE or any(part in name for part in _OTHERS)]
        if wrong != [_STORE] * _stores(node) and not _is_barrier(node):
            raise _Not(f"line {node.lineno} calls {wrong[0]}")
    for node in ast.walk(kernel):
        if isinstance(node, ast.NamedExpr | ast.Lambda | ast.comprehension | ast.Yield | ast.Await | ast.Starred):
            raise _Not(f"{kernel.name} is no straight-line code")


def _check_order(kernel: ast.FunctionDef) -> None:
    """Whatever is read is read before a barrier, whatever is stored is stored behind it."""
    _check_straight(kernel)
    barriers = [at for at, node in enumerate(kernel.body) if _is_barrier(node)]
    if len(barriers) != 1:
        raise _Not("no one barrier stands between what it reads and what it stores")
    for at, node in enumerate(kernel.body):
        if _stores(node) and at < barriers[0]:
            raise _Not(f"line {node.lineno} stores before the barrier")
        if at > barriers[0] and _LOAD in _called(node):
            raise _Not(f"line {node.lineno} reads behind the barrier")


def _check_places(kernel: ast.FunctionDef, written: str, read: str) -> None:
    """It stores once by one pointer, and reads by the other at the same places alone."""
    stores = [node for node in ast.walk(kernel) if _is_call(node, _STORE) and _names(node, written)]
    loads = [node for node in ast.walk(kernel) if _is_call(node, _LOAD) and _names(node, read)]
    uses = [node for node in ast.walk(kernel) if isinstance(node, ast.Name) and node.id in (written, read)]
    if len(stores) != 1 or len(uses) != 1 + len(loads):
        raise _Not(f"{written} and {read} are used otherwise than to store once and to load")
    (place,) = (_place(node, written) for node in stores)
    for node in loads:
        if _place(node, read) != place:
            raise _Not(f"{read} is read at other places than {written} is written")


def _names(call: ast.AST, pointer: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == pointer for node in ast.walk(call))


def _place(call: ast.AST, pointer: str) -> tuple[str, str]:
    """The address, of whatever pointer, and the mask, as text."""
    assert isinstance(call, ast.Call)
    count = sum(isinstance(node, ast.Name) and node.id == pointer for node in ast.walk(call))
    if not call.args or count != 1 or not _names(call.args[0], pointer):
        raise _Not(f"the address at line {call.lineno} is no offset from {pointer}")
    positional = 2 if _is_call(call, _STORE) else 1  # then the mask may follow
    masks = [*call.args[positional:], *(one.value for one in call.keywords if one.arg == "mask")]
    if len(masks) > 1 or not {one.arg for one in call.keywords} <= _KEYWORDS:
        raise _Not(f"the access at line {call.lineno} has arguments of another kind")
    address = _Renamed(pointer).visit(ast.parse(ast.unparse(call.args[0]), mode="eval"))
    return ast.dump(address), ast.dump(masks[0]) if masks else ""


class _Renamed(ast.NodeTransformer):
    def __init__(self, pointer: str) -> None:
        self._pointer = pointer

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("<pointer>", node.ctx) if node.id == self._pointer else node
