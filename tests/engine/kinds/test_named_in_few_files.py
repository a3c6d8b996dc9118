"""An operator kind, a library kernel, a target: each is one file, and few others name it.

Counted are the files of the engine whose code names it. Docstrings and comments do not count. Left aside are

- `research`, which the product does not import;
- a kind's own file, and `kinds/kind.py`, which says what a kind is;
- kinds that a graph is made of whatever it computes (inputs, constants, masks, ends of loops, outputs), because every
  pass over a graph meets them;
- of library kernels, `trace`: its tables list PyTorch's functions, whatever computes them;
- of targets, the interpreter: "cpu" is the name of PyTorch's device as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import mugraph
import pytest
from mugraph.kinds import Kind
from mugraph.targets import TARGETS

assert mugraph.__file__ is not None
ENGINE = Path(mugraph.__file__).parent
MOST = 4
COMPUTING = [kind for kind in Kind if kind.is_elementwise or kind.reduces or kind.scans]
LIBRARY = {
    "activated_matrix_product": r"\b_addmm_activation\b",
    "biased_matrix_product": r"torch\.b?addb?mm\b",
    "layer_norm": r"torch\.nn\.functional\.layer_norm\b",
    "group_norm": r"torch\.nn\.functional\.group_norm\b",
    "rms_norm": r"torch\.nn\.functional\.rms_norm\b",
    "softmax": r"torch\.softmax\b",
    "log_softmax": r"torch\.log_softmax\b",
    "convolution": r"convolution|\bconv(\d?d)?\b",
    "transposed_convolution": r"conv_transpose|transposed_convolution",
    "matrix_product": r"torch\.b?mm\b",
    "scaled_dot_product_attention": r"scaled_dot_product_attention",
    "scaled_matrix_product": r"\b_scaled_mm(_v2)?\b",
}
"""Each by its file: what code calls it, and the function of PyTorch's that it is."""
DEVICES = [target.name for target in TARGETS.values() if target.capability]
WORDS = re.compile("Kind|kinds|conv|torch|scaled_dot|" + "|".join([*DEVICES, *map(str.upper, DEVICES)]))
"""A file without any of them names nothing that is counted, and need not be read as Python, which takes long."""


def code_of(source: str) -> str:
    """Without text for people."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@pytest.fixture(scope="module")
def code() -> Mapping[str, str]:
    files = [path for path in ENGINE.rglob("*.py") if path.relative_to(ENGINE).parts[0] != "research"]
    texts = {path.relative_to(ENGINE).as_posix(): path.read_text() for path in files}
    return {file: code_of(text) if WORDS.search(text) else "" for file, text in texts.items()}


def naming(code: Mapping[str, str], pattern: str, *aside: str) -> list[str]:
    return [file for file, text in code.items() if re.search(pattern, text) and not file.startswith(aside)]


@pytest.fixture(scope="module")
def kinds_named(code: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """What stands for kinds in each file: "Kind.MUL", "mul" where a kind is looked up, "multiply.MUL" where it is
    imported."""
    found: dict[str, frozenset[str]] = {}
    for file, text in code.items():
        named = re.findall(r"\bKind\.\w+", text) + re.findall(r"\b(?:kind_named|find_kind)\('(\w+)'\)", text)
        for module, names in re.findall(r"from mugraph\.kinds\.(\w+) import ([^\n]*)", text):
            named += [f"{module}.{name}" for name in re.findall(r"\w+", names)]
        found[file] = frozenset(named)
    return found


def test_what_counts() -> None:
    source = '"""Kind.MUL in text."""\nx = Kind.MUL  # Kind.DIV\ndef f():\n    "Kind.ADD"\n'
    assert re.findall(r"Kind\.\w+", code_of(source)) == ["Kind.MUL"]


@pytest.mark.parametrize("kind", COMPUTING, ids=str)
def test_few_files_name_a_kind(kind: Kind, code: Mapping[str, str], kinds_named: Mapping[str, frozenset[str]]) -> None:
    name = kind.name.upper()
    own = next(file for file, text in code.items() if re.search(rf"^{name} = Kind\(", text, re.MULTILINE))
    spelled = {f"Kind.{name}", kind.name, f"{Path(own).stem}.{name}"}
    found = [file for file, named in kinds_named.items() if named & spelled and file not in ("kinds/kind.py", own)]
    assert len(found) <= MOST, found


@pytest.mark.parametrize("kernel", LIBRARY)
def test_few_files_name_a_library_kernel(kernel: str, code: Mapping[str, str]) -> None:
    assert f"ir/library/kernels/{kernel}.py" in code
    found = naming(code, LIBRARY[kernel], "trace/")
    found = [file for file in found if not file.startswith("recording/")]  # PyTorch's settings have such names
    assert len(found) <= MOST, found


def test_every_library_kernel_is_counted(code: Mapping[str, str]) -> None:
    files = [Path(file) for file in code if file.startswith("ir/library/kernels/")]
    assert {file.stem for file in files} - {"__init__"} == LIBRARY.keys()


@pytest.mark.parametrize("target", DEVICES)
def test_few_files_name_a_target(target: str, code: Mapping[str, str]) -> None:
    found = naming(code, rf"['\"]{target}['\"]|\b{target.upper()}\b")
    assert len(found) <= MOST, found
