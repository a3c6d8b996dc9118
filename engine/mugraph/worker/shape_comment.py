"""The `# mugraph:` comment that says a function's shapes, put above it or above its class."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from mugraph.trace.syntax.definitions import definitions
from mugraph.trace.syntax.nodes import Function
from mugraph.trace.syntax.shapes import comment_text
from mugraph.worker.edits import lines_of

_INIT = re.compile(r"(?<![\w.=(])init\s*\(")  # init(...) stands among keyword arguments, and is none


class NoPlace(Exception):
    """One sentence."""


def with_shapes(
    text: str, function: str, arguments: Mapping[str, str] | None, init: Mapping[str, str] | None = None
) -> str:
    """The text with the comment. arguments None: one to be filled in. init: of a module's constructor. Raises NoPlace.

    A module's shapes go above its class, where the comment is read for its `forward`.
    """
    try:
        nodes = {one.name: one.node for one in definitions(ast.parse(text))}
    except (SyntaxError, ValueError, RecursionError):
        raise NoPlace("the file is no valid Python at the moment") from None
    node = nodes.get(function)
    if node is None or isinstance(node, ast.ClassDef):
        raise NoPlace(f"there is no function {function} in the file")
    if arguments is None:
        arguments = _to_be_filled(node)
    owner = nodes.get(function.removesuffix(".forward")) if function.endswith(".forward") else None
    lines = lines_of(text)
    at = _first_line(owner or node)
    if owner is not None and _ours_above(lines, _first_line(node)) and not _ours_above(lines, at):
        at = _first_line(node)  # where the user has written one already
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = "\r\n" if lines[at].endswith("\r\n") else "\n"
    said = [f"{name}={value}" for name, value in arguments.items()]
    if init:
        said.append(f"init({', '.join(f'{name}={value}' for name, value in init.items())})")
    comment = f"{indent}# mugraph: {', '.join(said)}{end}"
    said_names = {*arguments, *(["init"] if init else [])}
    above = _ours_above(lines, at)
    first = at if above is None else above
    old = [number for number in range(first, at) if _names(lines[number]) & said_names]
    place = old[0] if old else at
    before = [line for number, line in enumerate(lines[:place]) if number not in old]
    after = [line for number, line in enumerate(lines[place:], place) if number not in old]
    return "".join([*before, comment, *after])


def _to_be_filled(node: Function) -> dict[str, str]:
    """Every argument that may be a tensor; three dots are no shape, and tracing says so until they are filled in."""
    plain = {"int", "float", "str", "bool", "None"}
    parameters = [*node.args.posonlyargs, *node.args.args]
    without = len(parameters) - len(node.args.defaults)
    return {
        parameter.arg: "f16[...]"
        for number, parameter in enumerate(parameters)
        if parameter.arg not in ("self", "cls")
        and number < max(without, 1)
        and (parameter.annotation is None or ast.unparse(parameter.annotation) not in plain)
    } or {"x": "f16[...]"}


def _first_line(node: Function | ast.ClassDef) -> int:
    """0-based, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1


def _ours_above(lines: list[str], at: int) -> int | None:
    """The first of the comment lines directly above line `at`, if one of them is ours."""
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    ours = [number for number in range(first, at) if comment_text(lines[number]) is not None]
    return ours[0] if ours else None


def _names(line: str) -> set[str]:
    """The arguments that a comment of ours speaks of."""
    said = comment_text(line)
    if said is None:
        return set()
    try:
        call = ast.parse(f"f({_INIT.sub('init=init(', said)})", mode="eval").body
    except SyntaxError:
        return set()
    return {keyword.arg for keyword in call.keywords if keyword.arg} if isinstance(call, ast.Call) else set()
