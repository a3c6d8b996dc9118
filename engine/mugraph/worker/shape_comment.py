"""The `# mugraph:` comment that says a function's shapes: put above it or its class, or where there is one already."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Mapping

from mugraph.trace.syntax.definitions import definitions
from mugraph.trace.syntax.shape_comments import ShapeComments, first_line
from mugraph.trace.syntax.shapes import comment_text
from mugraph.trace.syntax.source import Source
from mugraph.trace.syntax.tensor_arguments import tensor_arguments
from mugraph.worker.edits import lines_of

_log = logging.getLogger("mugraph.worker")

_INIT = re.compile(r"(?<![\w.=(])init\s*\(")  # init(...) stands among keyword arguments, and is none


class NoPlace(Exception):
    """One sentence."""


def with_shapes(
    text: str, function: str, arguments: Mapping[str, str] | None, init: Mapping[str, str] | None = None
) -> str:
    """The text with the comment. arguments None: one to be filled in. init: of a module's constructor. Raises NoPlace.

    A module's shapes go above its class, where the comment is read for its `forward`.
    """
    source = Source("", text)
    try:
        nodes = {one.name: one.node for one in definitions(source.tree)}
    except (SyntaxError, ValueError, RecursionError):
        raise NoPlace("the file is no valid Python at the moment") from None
    node = nodes.get(function)
    if node is None or isinstance(node, ast.ClassDef):
        raise NoPlace(f"there is no function {function} in the file")
    if arguments is None:
        arguments = dict.fromkeys(tensor_arguments(node), "f16[...]")  # dots are no shape, and tracing says so
        if not arguments:
            raise NoPlace(
                f"no argument of {function} looks like a tensor; mugraph record can say what it is called with"
            )
    comments = ShapeComments(source)
    holder = nodes.get(function.removesuffix(".forward"), node) if function.endswith(".forward") else node
    if comments.lines(node) and not comments.lines(holder):
        holder = node  # where the user has written one already
    said = [f"{name}={value}" for name, value in arguments.items()]
    if init:
        said.append(f"init({', '.join(f'{name}={value}' for name, value in init.items())})")
    said_names = {*arguments, *(["init"] if init else [])}
    lines = lines_of(text)
    old = [line - 1 for line in comments.lines(holder) if _names(lines[line - 1]) & said_names]
    place = old[0] if old else first_line(holder) - 1
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    end = "\r\n" if lines[place].endswith("\r\n") else "\n"
    comment = f"{indent}# mugraph: {', '.join(said)}{end}"
    before = [line for number, line in enumerate(lines[:place]) if number not in old]
    after = [line for number, line in enumerate(lines[place:], place) if number not in old]
    return "".join([*before, comment, *after])


def _names(line: str) -> set[str]:
    """The arguments that a comment of ours speaks of."""
    said = comment_text(line)
    if said is None:
        return set()
    try:
        call = ast.parse(f"f({_INIT.sub('init=init(', said)})", mode="eval").body
    except SyntaxError as error:  # tracing says what is wrong with it
        _log.debug("the comment “%s” is not read: %s", said, error)
        return set()
    return {keyword.arg for keyword in call.keywords if keyword.arg} if isinstance(call, ast.Call) else set()
