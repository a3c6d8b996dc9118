"""Whether a text can matter, found out before any of it runs: first by words, then by its syntax tree.

The tree of a large text takes longer than a hover may (100,000 lines: a second), and nothing else would run meanwhile.
Such a text is looked at in another process: `python -m mugraph_server.relevance` reads it and prints the answer.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import io
import json
import logging
import re
import sys
import tokenize
import warnings
from dataclasses import asdict, dataclass
from pathlib import PurePath

INLINE = 48_000
"""Characters up to which a text is parsed in the server itself: about 20 ms."""
_TIMEOUT_S = 20.0

_TORCH = re.compile(r"^[ \t]*(?:>>> )?(?:import|from)[ \t]+(?:[\w., \t]*\b)?(?:torch|jaxtyping|einops)\b", re.MULTILINE)
_GENERATED = re.compile(r'\A"""GPU kernels for [^\n]* written by mugraph ')
_COMMENT = re.compile(r"^[ \t]*#[ \t]*mugraph:", re.MULTILINE)
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class Look:
    """matters: torch is imported and a function is defined, or a region's code could stand at module level
    error:       why it does not parse; "" if it does
    fingerprint: of everything that a trace depends on: the tree and our comments, not where lines stand
    heads:       lines (0-based) of functions that look as if they would be traced, for the views until they are
    """

    matters: bool
    error: str = ""
    fingerprint: str = ""
    heads: tuple[int, ...] = ()


_NOTHING = Look(False)


def can_matter(text: str) -> bool:
    """By words alone."""
    return "torch" in text and _TORCH.search(text) is not None and _GENERATED.match(text) is None


def is_installed(path: str) -> bool:
    """Whether it is a library's file: people read those, and do not want to hear how they could be faster."""
    return not _INSTALLED.isdisjoint(PurePath(path).parts)


def look(text: str) -> Look:
    if not can_matter(text):
        return Look(False, "", _digest(text))
    try:
        tree = _parse(text)
    except _UNPARSABLE as error:
        return Look(False, _sentence(error), _digest(text))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    comments = "\n".join(_comments(text))
    dump = ast.dump(tree)
    return Look(bool(functions), "", _digest(dump, comments), _heads(tree, text))


def parses(text: str) -> bool:
    try:
        _parse(text)
    except _UNPARSABLE:  # that is the answer
        return False
    return True


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the user's invalid escape sequences are not ours to print
        return ast.parse(text)


_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


async def look_apart(text: str) -> Look:
    """As `look`, in another process. If that fails, the text is taken to matter: the engine will look at it."""
    if not can_matter(text):
        return look(text)
    command = (sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {_CHILD}")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    try:
        data = text.encode("utf-8", "surrogatepass")
        out, _ = await asyncio.wait_for(process.communicate(data), _TIMEOUT_S)
        given = json.loads(out)
        return Look(given["matters"], given["error"], given["fingerprint"], tuple(given["heads"]))
    except (TimeoutError, ValueError) as error:
        logging.getLogger("mugraph_server").warning("a text was not looked at: %s", error or type(error).__name__)
        return Look(True, "", _digest(text))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                process.kill()


_CHILD = "from mugraph_server.relevance import main; main()"


def main() -> None:
    text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    print(json.dumps(asdict(look(text))))


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _sentence(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    return "it is nested too deeply" if isinstance(error, RecursionError | MemoryError) else str(error)


def _comments(text: str) -> list[str]:
    """Our comments, which say shapes. Each counts with the code directly below it, so that line is included."""
    if not _COMMENT.search(text):
        return []
    lines = text.split("\n")
    comments: dict[int, str] = {}
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # comments up to there count
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.string.strip()
    found: list[str] = []
    for number, comment in comments.items():
        if _COMMENT.match(comment):
            below = number + 1
            while below in comments:
                below += 1
            found += [comment, lines[below - 1].strip() if below <= len(lines) else ""]
    return found


def _heads(tree: ast.Module, text: str) -> tuple[int, ...]:
    """Of functions with one of our comments directly above them or in the first lines of their body, and of the
    `forward` of classes that have one."""
    lines = text.split("\n")
    heads: list[int] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
        above = lines[first - 1] if 0 < first <= len(lines) else ""
        if not _COMMENT.match(above) and not any(map(_COMMENT.match, _before(node.body[0], node.lineno, lines))):
            continue
        if isinstance(node, ast.ClassDef):
            heads += [n.lineno - 1 for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"]
        else:
            heads.append(node.lineno - 1)
    return tuple(heads)


def _before(statement: ast.stmt, head: int, lines: list[str]) -> list[str]:
    """The comments and blank lines between a definition's head and its first statement."""
    at = end = statement.lineno - 1
    while at > head and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    return lines[at:end]


if __name__ == "__main__":
    main()
