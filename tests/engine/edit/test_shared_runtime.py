"""What kernel modules share stands in one file: written once, taken out with the last of them, never missed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from mugraph.edit import apply as applying
from mugraph.edit.apply import EditError, apply_files
from mugraph.edit.module.carried import sealed
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_FILE, RUNTIME_NAME
from mugraph.edit.revert import revert_file
from mugraph.edit.source import files


@pytest.fixture
def x():
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(1))


def runtimes(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("mugraph_runtime_*.py"))


def test_its_name_says_what_it_holds() -> None:
    assert RUNTIME_FILE.fullmatch(RUNTIME_NAME)
    tree = ast.parse(RUNTIME)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"torch", "triton"}


def test_no_name_means_two_things() -> None:
    bound = [name for node in ast.parse(RUNTIME).body for name in names_of(node)]
    assert [name for name, times in Counter(bound).items() if times > 1] == []


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def test_two_files_share_one_and_the_last_takes_it_out(tmp_path, maker, source, part) -> None:
    paths = [tmp_path / "first.py", tmp_path / "second.py"]
    for path in paths:
        path.write_text(source)
        done = apply_files(path, [maker.plan(source, part)], maker.kernels)
        assert done.runtime.read_text() == RUNTIME
    assert runtimes(tmp_path) == [f"{RUNTIME_NAME}.py"]
    assert revert_file(paths[0]).deleted == (tmp_path / "first_mugraph.py",)
    assert runtimes(tmp_path) == [f"{RUNTIME_NAME}.py"]
    assert revert_file(paths[1]).deleted == (tmp_path / "second_mugraph.py", tmp_path / f"{RUNTIME_NAME}.py")
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == [source, source]


def test_versions_lie_side_by_side(gated_file, maker, source, part, load, on_this_machine, x, monkeypatch) -> None:
    """Another version's runtime stays with the modules that name it."""
    other = gated_file.with_name("other.py")
    other.write_text(source)
    first = apply_files(other, [maker.plan(source, part)], maker.kernels)
    newer = "mugraph_runtime_0123456789"
    monkeypatch.setattr(applying, "RUNTIME_NAME", newer)
    second = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    text = second.module.read_text().replace(RUNTIME_NAME, newer)
    second.module.write_text(sealed(text))
    assert runtimes(gated_file.parent) == sorted([f"{newer}.py", f"{RUNTIME_NAME}.py"])
    loaded = [load(path) for path in (other, gated_file)]
    for one in loaded:
        log = on_this_machine(one.kernels)
        with torch.no_grad():
            one.model.Gated().eval()(x)
        assert log == ["gate"]
    assert loaded[0].kernels._worlds is not loaded[1].kernels._worlds
    assert revert_file(other).deleted == (first.module, first.runtime)
    assert runtimes(gated_file.parent) == [f"{newer}.py"]


@pytest.mark.parametrize("damage", ["missing", "no Python", "cut"])
def test_without_it_the_original_runs(damage, gated_file, maker, source, part, load, x) -> None:
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    if damage == "missing":
        done.runtime.unlink()
    else:
        done.runtime.write_text("def (" if damage == "no Python" else RUNTIME[: RUNTIME.index("def _all_hold")])
    with pytest.warns(UserWarning, match="gated_model_mugraph: the kernels are not used"):
        loaded = load(gated_file)
    model = loaded.model.Gated().eval()
    with torch.no_grad():
        assert not loaded.kernels.gated_fits(model, x)
        assert model(x).shape == (4, 16)
    with pytest.raises(SystemExit, match="missing or damaged" if damage == "missing" else "was edited since"):
        loaded.kernels._main()
    assert revert_file(gated_file).regions == 1
    assert list(gated_file.parent.glob("*mugraph*")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if type(tensor) not in _PLAIN", "if False"),
        ("is_neg()", "is_inference()"),
        ("# Where the kernels may run", "# Where they may"),
    ],
)
def test_an_edited_one_is_not_used(old, new, gated_file, maker, source, part, load, x) -> None:
    """Whatever it is that was edited: the original runs."""
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    text = done.runtime.read_text()
    assert old in text
    done.runtime.write_text(text.replace(old, new))
    with pytest.warns(UserWarning, match=f"{RUNTIME_NAME}.py was edited since it was written"):
        loaded = load(gated_file)
    model = loaded.model.Gated().eval()
    with torch.no_grad():
        assert not loaded.kernels.gated_fits(model, x)
        assert model(x).shape == (4, 16)


@pytest.mark.parametrize("edit", ["a kernel", "the evidence", "its digest"])
def test_one_that_was_edited_is_not_used(edit, gated_file, maker, source, part, load, x) -> None:
    """Its kernels are not those that were tested: the original runs."""
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    text = done.module.read_text()
    old, new = {
        "a kernel": ("tl.sigmoid(", "tl.exp("),
        "the evidence": ("_EVIDENCE = {", "_OTHER = {"),
        "its digest": (text.split("'sha256': '")[1][:64], "0" * 64),
    }[edit]
    assert old in text
    done.module.write_text(text.replace(old, new))
    with pytest.warns(UserWarning, match="gated_model_mugraph: the kernels are not used: .* was edited since"):
        loaded = load(gated_file)
    model = loaded.model.Gated().eval()
    with torch.no_grad():
        assert not loaded.kernels.gated_fits(model, x)
        assert model(x).shape == (4, 16)
    with pytest.raises(SystemExit, match="was edited since it was written"):
        loaded.kernels._main()


def test_what_formats_code_leaves_it_as_it_is(gated_file, maker, source, part) -> None:
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    for written in (done.module, done.runtime):
        before = written.read_bytes()
        for command in (["format"], ["check", "--select", "I", "--fix"]):
            ruff = [sys.executable, "-m", "ruff", *command, "--isolated", str(written)]
            ran = subprocess.run(ruff, capture_output=True)
            assert ran.returncode == 0, ran.stderr
        assert written.read_bytes() == before


def test_one_with_other_line_ends_is_used(gated_file, maker, source, part, load, on_this_machine, x) -> None:
    """As version control may write it."""
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    for written in (done.module, done.runtime):
        written.write_bytes(written.read_bytes().replace(b"\n", b"\r\n"))
    loaded = load(gated_file)
    log = on_this_machine(loaded.kernels)
    with torch.no_grad():
        loaded.model.Gated().eval()(x)
    assert log == ["gate"]


def test_a_damaged_one_is_written_anew(gated_file, maker, source, part) -> None:
    gated_file.with_name(f"{RUNTIME_NAME}.py").write_text("x = 1\n")
    assert apply_files(gated_file, [maker.plan(source, part)], maker.kernels).runtime.read_text() == RUNTIME


def test_it_goes_again_where_the_edit_fails(gated_file, maker, source, part, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_place", full)
    with pytest.raises(EditError, match="No space left on device"):
        apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    assert list(gated_file.parent.iterdir()) == [gated_file]


def test_a_module_with_everything_in_it(maker, source, part, tmp_path, monkeypatch, x) -> None:
    """What is measured is one file."""
    from mugraph.edit.module.file import module_text

    text = module_text([maker.plan(source, part)], maker.kernels, original_path=Path("gated.py"), alone=True)
    assert "mugraph_runtime" not in text
    (tmp_path / "all_of_it.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import all_of_it  # type: ignore[import-not-found]

    assert not all_of_it._runs_here(x)
    del sys.modules["all_of_it"]


def test_code_that_imports_all_files_of_its_folder_may_import_it(tmp_path, maker, source, part) -> None:
    """As packages do whose classes register themselves. Before and after a kernel module has read it."""
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import importlib, pkgutil\n"
        "for one in pkgutil.walk_packages(__path__, __name__ + '.'):\n"
        "    importlib.import_module(one.name)\n"
    )
    for name in ("alpha.py", "omega.py"):
        (package / name).write_text(source)
        apply_files(package / name, [maker.plan(source, part)], maker.kernels)
    asked = "import parts, sys; print(sum(one.startswith('parts.mugraph_runtime_') for one in sys.modules))"
    run = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "1", "")


def test_a_package_that_is_put_on_the_path(tmp_path, maker, source, part) -> None:
    """Its files import each other by their bare names, as research code does, or with the package's: both find it."""
    package = tmp_path / "core"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "gated.py").write_text(source)
    (package / "model.py").write_text("from gated import Gated\n")
    apply_files(package / "gated.py", [maker.plan(source, part)], maker.kernels)
    for asked in ("import sys; sys.path.append('core'); from model import Gated", "from core.gated import Gated"):
        run = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
