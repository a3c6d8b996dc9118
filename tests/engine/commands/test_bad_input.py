"""Input that cannot be optimised: one clear sentence, the right exit status, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
from mugraph.cli import run

MODULE = """\
import torch


# mugraph: x=f16[4, 32], w=f16[32, 32]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w
"""


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def mugraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Runs the command line in this process, with a store of its own."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))

    def call(*arguments: str) -> Said:
        status = run(arguments)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Said(status, out, err)

    return call


def written(tmp_path: Path, text: str | bytes, name: str = "model.py") -> str:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def one_sentence(said: Said, *words: str) -> None:
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("mugraph: ")
    for word in words:
        assert word in lines[0]


# --- wrong usage: 2 ------------------------------------------------------------------------------------------------


def test_directory(mugraph, tmp_path: Path):
    said = mugraph("optimize", str(tmp_path))
    assert said.status == 2
    one_sentence(said, "is a directory")


def test_missing_path(mugraph, tmp_path: Path):
    said = mugraph("optimize", str(tmp_path / "nowhere.py"))
    assert said.status == 2
    one_sentence(said, "nowhere.py does not exist")


def test_unknown_qualname(mugraph, tmp_path: Path):
    said = mugraph("optimize", f"{written(tmp_path, MODULE)}:Nothing.forward")
    assert said.status == 2
    assert said.out == ""
    one_sentence(said, "Nothing.forward")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "PATH"),
        (["--target", "voodoo"], "voodoo"),
        (["--budget", "soon"], "--budget"),
        (["--budget", "-1"], "--budget"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_options(mugraph, tmp_path: Path, arguments: list[str], word: str):
    path = [written(tmp_path, MODULE)] if arguments else []
    said = mugraph("optimize", *path, *arguments)
    assert said.status == 2
    one_sentence(said, word)


def test_unknown_command(mugraph):
    said = mugraph("pessimise")
    assert said.status == 2
    one_sentence(said, "pessimise")


def test_ugraph_that_is_no_json(mugraph, tmp_path: Path):
    said = mugraph("verify", "--ugraph", written(tmp_path, "{", "g.json"), written(tmp_path, MODULE))
    assert said.status == 2
    one_sentence(said, "g.json", "JSON")


@pytest.mark.parametrize("text", ["[]", "{}", '[{"kernels": 3}]', "17"])
def test_ugraph_that_is_no_mugraph(mugraph, tmp_path: Path, text: str):
    said = mugraph("verify", "--ugraph", written(tmp_path, text, "g.json"), written(tmp_path, MODULE))
    assert said.status == 2
    one_sentence(said, "μGraph")


def test_revert_of_a_file_never_edited(mugraph, tmp_path: Path):
    path = written(tmp_path, MODULE)
    said = mugraph("revert", path)
    assert said.status == 1
    one_sentence(said, "model.py")
    assert Path(path).read_text() == MODULE


# --- files that fail: 1 --------------------------------------------------------------------------------------------


def test_does_not_parse(mugraph, tmp_path: Path):
    said = mugraph("optimize", written(tmp_path, "def f(:\n"), "--json")
    assert said.status == 1
    assert json.loads(said.out)["regions"] == []
    one_sentence(said, "model.py", "line 1")


@pytest.mark.usefixtures("whole_process")
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("import a_module_nobody_has", "a_module_nobody_has"),
        ("raise RuntimeError('not today')", "not today"),
        ("import os; os._exit(3)", "3"),
    ],
    ids=["imports something missing", "raises at import", "os._exit at import"],
)
def test_does_not_import(mugraph, tmp_path: Path, line: str, word: str):
    said = mugraph("optimize", written(tmp_path, f"{line}\n{MODULE}"), "--json")
    assert said.status == 1
    assert json.loads(said.out)["regions"] == []
    one_sentence(said, "model.py", word)


@pytest.mark.usefixtures("whole_process")
def test_loops_at_import(mugraph, tmp_path: Path):
    path = written(tmp_path, f"import time\nwhile True:\n    time.sleep(1)\n{MODULE}")
    said = mugraph("optimize", path, "--json", "--trace-timeout", "5")
    assert said.status == 1
    assert json.loads(said.out)["regions"] == []
    one_sentence(said, "still running")


def test_raises_in_forward(mugraph, tmp_path: Path):
    text = MODULE.replace("return x @ w", "raise ValueError('no forward')")
    said = mugraph("optimize", written(tmp_path, text), "--json")
    assert said.status == 1
    assert "no forward" in said.err + said.out


def test_shapes_that_do_not_fit(mugraph, tmp_path: Path):
    said = mugraph("optimize", written(tmp_path, MODULE.replace("w=f16[32, 32]", "w=f16[31, 32]")), "--json")
    assert said.status == 1
    assert "31" in said.err + said.out


# --- files with nothing to do: 0 -----------------------------------------------------------------------------------


def test_empty(mugraph, tmp_path: Path):
    said = mugraph("optimize", written(tmp_path, ""), "--json")
    assert said.status == 0
    assert said.err == ""
    assert json.loads(said.out)["regions"] == []


def test_no_shapes(mugraph, tmp_path: Path):
    said = mugraph("optimize", written(tmp_path, MODULE.replace("# mugraph", "# nothing")), "--json")
    assert said.status == 0
    (region,) = json.loads(said.out)["regions"]
    assert region["status"] == "needs-shapes"
    assert region["reason"]
    assert region["range"]["start"]["line"] == 4


def test_twenty_thousand_lines(mugraph, tmp_path: Path):
    text = "".join(f"value_{i} = {i} * 2\n" for i in range(20_000))
    said = mugraph("optimize", written(tmp_path, text), "--json")
    assert said.status == 0
    assert json.loads(said.out)["regions"] == []


# --- odd files that work -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("    ", "\t").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: (
            text.replace("product", "größe").replace("x:", "χ:").replace("x=", "χ=").replace("x @", "χ @").encode()
        ),
    ],
    ids=["CRLF", "tabs", "BOM", "non-ASCII identifiers"],
)
def test_odd_text(mugraph, tmp_path: Path, change):
    path = Path(written(tmp_path, change(MODULE)))
    said = mugraph("optimize", str(path), "--json")
    assert said.status == 0, said.err
    (region,) = json.loads(said.out)["regions"]
    assert region["status"] in ("improved", "no-gain")
    # The range is in the text as it stands: 0-based, UTF-16.
    line = path.read_bytes().decode("utf-8-sig").splitlines()[region["range"]["start"]["line"]]
    assert line[region["range"]["start"]["character"] : region["range"]["end"]["character"]].endswith("@ w")


def test_two_classes_of_one_name(mugraph, tmp_path: Path):
    said = mugraph("optimize", written(tmp_path, MODULE + MODULE.replace("x @ w", "(x @ w) * 2")), "--json")
    assert said.status == 0, said.err
    regions = json.loads(said.out)["regions"]
    assert {region["range"]["start"]["line"] for region in regions} == {11}  # the later one is what the name means


@pytest.mark.usefixtures("whole_process")
def test_printing_at_import_stays_out_of_the_document(mugraph, tmp_path: Path):
    noise = "import os, sys\nprint('{{{')\nsys.stdout.flush()\nos.write(1, b'}}}')\n"
    said = mugraph("optimize", written(tmp_path, noise + MODULE), "--json")
    assert said.status == 0, said.err
    assert json.loads(said.out)["file"].endswith("model.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_apply_in_a_read_only_folder(mugraph, tmp_path: Path):
    folder = tmp_path / "sealed"
    folder.mkdir()
    path = Path(written(folder, MODULE.replace("x @ w", "torch.softmax(x @ w, -1) @ w")))
    before = path.read_bytes()
    folder.chmod(0o555)
    try:
        said = mugraph("optimize", str(path), "--apply")
    finally:
        folder.chmod(0o755)
    assert said.status == 1
    one_sentence(said, "sealed")
    assert path.read_bytes() == before
    assert list(folder.iterdir()) == [path]
