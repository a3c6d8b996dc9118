"""What one region's code becomes. Several plans for the same code are asked one after the other: each takes calls that
those before it refuse."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from mugraph.edit.module.operator import call
from mugraph.edit.module.reads import arguments
from mugraph.edit.names import mugraph_id
from mugraph.edit.source.indent import indent_lines, indent_unit, indentation
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.ir.kernel import Rejected
from mugraph.plans.plan import RegionPlan

MARK = "# mugraph: "
WIDTH = 100


@dataclass(frozen=True)
class Replacement:
    """[start, end) of the file's text holds `original` and becomes `text`."""

    plans: tuple[RegionPlan, ...]
    start: int
    end: int
    original: str
    text: str

    @property
    def name(self) -> str:
        """Of the first plan, which is asked first."""
        return self.plans[0].name


def replacement(
    file: SourceFile, tree: ast.Module, plans: Sequence[RegionPlan], alias: str, in_string: frozenset[int]
) -> Replacement:
    """The replacement for the code that the plans' regions are all in.

    in_string: lines of the file that begin inside a string literal

    Raises EditError when the range is not whole statements, nor an expression, of this file.
    """
    plans = tuple(plans)
    region = plans[0].region
    start, end = file.offset(region.range.start), file.offset(region.range.end)
    text = file.text[start:end]
    if not text.strip() or _unix(text) != _unix(region.text):
        raise EditError(f"The code of {region.function} has changed since it was analysed; analyse the file again.")
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    if region.unit == "expression":
        return _expression(file, plans, alias, start, end, in_string)
    run = _statements_at(file, tree, start, end)
    if not run:
        raise EditError(f"The range found in {region.function} is no run of whole statements; analyse the file again.")
    first, last = file.line_of(start), file.line_of(end - 1)
    before, after = file.text[file.starts[first] : start], file.text[end : file.line_end(last)].strip()
    if before.strip() or (after and not after.startswith("#")):
        return _value_of_statement(file, plans, alias, run, in_string)
    return _statements(file, plans, alias, run, first, last, in_string)


def _unix(text: str) -> str:
    """The text with "\n" line ends and no blanks around it: as Python reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _statements_at(file: SourceFile, tree: ast.Module, start: int, end: int) -> list[ast.stmt]:
    """The statements of one block that begin at `start` and end at `end` together; [] when there are none."""
    for block in _blocks(tree):
        run = [node for node in block if start <= _span(file, node)[0] and _span(file, node)[1] <= end]
        if run and _span(file, run[0])[0] == start and _span(file, run[-1])[1] == end:
            return run
    return []


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    blocks: list[list[ast.stmt]] = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):  # IfExp and Lambda have one expression there
                blocks.append(cast(list[ast.stmt], block))
    return blocks


def _span(file: SourceFile, node: ast.stmt | ast.expr) -> tuple[int, int]:
    start = file.offset_utf8(node.lineno, node.col_offset)
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and node.decorator_list:
        start = min(start, _span(file, node.decorator_list[0])[0] - 1)
    return start, file.offset_utf8(node.end_lineno or node.lineno, node.end_col_offset or 0)


def _arguments(plan: RegionPlan) -> tuple[str, ...]:
    try:
        return arguments(plan)
    except Rejected as error:
        raise EditError(str(error)) from None


def _statements(
    file: SourceFile,
    plans: tuple[RegionPlan, ...],
    alias: str,
    run: list[ast.stmt],
    first: int,
    last: int,
    in_string: frozenset[int],
) -> Replacement:
    indent, unit = indentation(file.line(first)), indent_unit(file, first)
    room = WIDTH - len(indent)
    lines: list[str] = []
    for plan in plans:
        mark, word = f"{MARK}{mugraph_id(plan)}", "elif " if lines else "if "
        lines += call(word, f"{alias}.{plan.name}_fits", _arguments(plan), f":  {mark}", width=room)
        lines += [f"    {line}" for line in _call_statement(plan, alias, run, room - 4)]
    lines.append("else:")
    start, end = file.starts[first], file.next_line(last)
    text = "".join(indent + _reindented(line, unit) + "\n" for line in lines)
    text += indent_lines(file, first, last, unit, in_string)
    return Replacement(plans, start, end, file.text[start:end], text)


def _reindented(line: str, unit: str) -> str:
    """The lines, indented the way the file is: ours have four blanks a level."""
    body = line.lstrip(" ")
    return unit * ((len(line) - len(body)) // 4) + body


def _call_statement(plan: RegionPlan, alias: str, run: list[ast.stmt], width: int) -> list[str]:
    region, callee = plan.region, f"{alias}.{plan.name}"
    names = [live_out.expression for live_out in region.live_outs]
    if not names and not region.stored:
        raise EditError(f"Nothing that {region.function} computes there is used.")
    last = run[-1]
    if not names:
        none = [f"{name} = None" for name in region.left_none]
        return [*call("", callee, _arguments(plan), width=width), *none]
    if "return" not in names:
        if any(isinstance(node, ast.Return) for node in run):
            raise EditError(f"The range found in {region.function} returns, and what it returns is not known.")
        none = [f"{name} = None" for name in region.left_none]
        return [*call(f"{', '.join(names)} = ", callee, _arguments(plan), width=width), *none]
    if any(name != "return" for name in names) or not isinstance(last, ast.Return):
        raise EditError(f"The range found in {region.function} returns and goes on; it cannot be replaced.")
    elements = last.value.elts if isinstance(last.value, ast.Tuple) else None
    if len(names) == 1 and elements is None:
        return call("return ", callee, _arguments(plan), width=width)
    if elements is None or len(elements) != len(names) or any(isinstance(node, ast.Starred) for node in elements):
        raise EditError(f"{region.function} returns something that is no plain tuple of what was traced.")
    if len(names) == 1:
        return call("return (", callee, _arguments(plan), ",)", width=width)
    return call("return ", callee, _arguments(plan), width=width)


def _value_of_statement(
    file: SourceFile, plans: tuple[RegionPlan, ...], alias: str, run: list[ast.stmt], in_string: frozenset[int]
) -> Replacement:
    """The value of a single `return value` or `name = value` that shares its line with other code; only the value is
    replaced."""
    region = plans[0].region
    node, names = run[0], [live_out.expression for live_out in region.live_outs]
    bound: list[str] = []
    if isinstance(node, ast.Return):
        bound = ["return"]
    elif isinstance(node, ast.Assign):
        bound = [ast.unparse(target) for target in node.targets]
    value = node.value if isinstance(node, (ast.Return, ast.Assign)) and len(run) == 1 and bound == names else None
    if value is None or isinstance(value, (ast.Tuple, ast.List)):
        raise EditError(f"The code of {region.function} shares a line with other code; put it on its own.")
    return _expression(file, plans, alias, *_span(file, value), in_string)


def _expression(
    file: SourceFile, plans: tuple[RegionPlan, ...], alias: str, start: int, end: int, in_string: frozenset[int]
) -> Replacement:
    original, function = file.text[start:end], plans[0].region.function
    line = file.line_of(start)
    indent, unit = indentation(file.line(line)), indent_unit(file, line)
    try:
        parsed = ast.parse(f"(\n{original}\n)", mode="eval").body
    except SyntaxError:
        raise EditError(f"The range in {function} is no expression; analyse the file again.") from None
    several = any(len(plan.region.live_outs) != 1 for plan in plans)
    if isinstance(parsed, (ast.NamedExpr, ast.Tuple, ast.GeneratorExp)) or several:
        raise EditError(f"The range found in {function} is no expression with one tensor as its value.")
    room = WIDTH - len(indent) - len(unit)
    lines: list[str] = []
    for plan in plans:
        mark, word = f"  {MARK}{mugraph_id(plan)}", "else " if lines else ""
        lines += call(word, f"{alias}.{plan.name}", _arguments(plan), mark, width=room)
        lines += call("if ", f"{alias}.{plan.name}_fits", _arguments(plan), width=room)
    text = "(\n" + "".join(f"{indent}{unit}{_reindented(line, unit)}\n" for line in lines)
    text += f"{indent}{unit}else {_deeper(file, start, end, indent, unit, in_string)}\n{indent})"
    return Replacement(plans, start, end, original, text)


def _deeper(file: SourceFile, start: int, end: int, indent: str, unit: str, in_string: frozenset[int]) -> str:
    """The expression's text with the lines after its first moved: as far as its first line is, which begins one level
    deeper than the statement's own."""
    first, last = file.line_of(start), file.line_of(end - 1)
    if first == last:
        return file.text[start:end]
    lines = [file.text[start : file.next_line(first)]]
    for number in range(first + 1, last + 1):
        line = file.text[file.starts[number] : end if number == last else file.next_line(number)]
        moved = line.startswith(indent) and number not in in_string and line.strip()
        lines.append(f"{indent}{unit}{line.removeprefix(indent)}" if moved else line)
    return "".join(lines)
