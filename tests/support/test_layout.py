"""How the tests lie: a folder for each room of the engine, and no test leans on another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mugraph

assert mugraph.__file__ is not None
TESTS = Path(__file__).parents[1]
ENGINE = Path(mugraph.__file__).parent
ELSEWHERE = {
    "protocol": "server",  # what it says, the server's tests compare with the editor's package
    "targets": "engine/codegen",  # kernels are compiled for one
}
FILES = sorted(path for path in TESTS.rglob("*.py") if "__snapshots__" not in path.parts)


def rooms(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir() and list(path.rglob("*.py"))}


def test_rooms_and_their_tests_have_one_name() -> None:
    tested, there = rooms(TESTS / "engine"), rooms(ENGINE)
    assert tested - there - {path.stem for path in ENGINE.glob("*.py")} == set()
    assert there - tested == ELSEWHERE.keys()
    for room in ELSEWHERE.values():
        assert list((TESTS / room).glob("test_*.py"))


def test_files_alone_have_a_test_of_their_name() -> None:
    tested = {path.stem.removeprefix("test_") for path in (TESTS / "engine").glob("test_*.py")}
    assert tested <= {path.stem for path in ENGINE.glob("*.py")}


def test_no_test_imports_another() -> None:
    assert [(path.name, module) for path in FILES for module in imported(path) if is_test(module)] == []


def test_what_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("import a.test_b\nfrom .test_c import d\nfrom a import test_e\nimport latest_f, test\n")
    assert [module for module in imported(path) if is_test(module)] == ["a.test_b", "test_c", "a.test_e"]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names if alias.name.startswith("test_"))


def is_test(module: str) -> bool:
    return any(part.startswith("test_") for part in module.split("."))


def test_no_test_changes_where_modules_are_looked_for() -> None:
    """But for programs that tests run in a process of their own."""
    programs = [path for path in FILES if not path.name.startswith(("test_", "conftest"))]
    programs = [path for path in programs if 'if __name__ == "__main__":' in path.read_text()]
    assert [path.name for path in FILES if path not in programs and changes_path(path.read_text())] == []


def test_what_changes_where_modules_are_looked_for() -> None:
    for text in ("sys.path[:] = x", "sys.path.insert(0, x)", "sys.path += x", "del sys.path[0]", "sys.path = x"):
        assert changes_path(text), text
    for text in ("x = list(sys.path)", "[one for one in sys.path]", "os.path.join(a)", "x = 'sys.path = 1'"):
        assert not changes_path(text), text


def changes_path(text: str) -> bool:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(value)):
                changed = [value]
            case ast.Assign(targets) | ast.Delete(targets):
                changed = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
            case ast.AugAssign(target):
                changed = [target]
            case _:
                continue
        if any(ast.unparse(one) == "sys.path" for one in changed):
            return True
    return False
