"""No code reads a field of a slotted class from the class: there it is a descriptor, not the default, and pyright says
nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import mugraph

assert mugraph.__file__ is not None
ENGINE = Path(mugraph.__file__).parent


def test_no_field_of_a_slotted_class_is_read_from_the_class() -> None:
    assert from_the_class([ast.parse(path.read_text()) for path in ENGINE.rglob("*.py")]) == []


def test_what_is_read_from_the_class() -> None:
    slotted = (
        "@dataclass(frozen=True, slots=True)\nclass A:\n    x: int = 0\n    @classmethod\n    def none(cls): ...\n"
    )
    assert from_the_class(map(ast.parse, (slotted, "y = A.x"))) == ["A.x"]
    assert from_the_class(map(ast.parse, (slotted, "y = A().x; A.none()"))) == []
    assert from_the_class(map(ast.parse, (slotted.replace("slots", "order"), "y = A.x"))) == []


def from_the_class(modules: Iterable[ast.Module]) -> list[str]:
    nodes = [node for module in modules for node in ast.walk(module)]
    fields = {(one.name, field) for one in nodes if isinstance(one, ast.ClassDef) for field in slots(one)}
    reads = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    return [ast.unparse(node) for node in reads if (ast.unparse(node.value), node.attr) in fields]


def slots(one: ast.ClassDef) -> list[str]:
    if not any("slots=True" in ast.unparse(decorator) for decorator in one.decorator_list):
        return []
    stated = (node.target for node in one.body if isinstance(node, ast.AnnAssign))
    return [target.id for target in stated if isinstance(target, ast.Name)]
