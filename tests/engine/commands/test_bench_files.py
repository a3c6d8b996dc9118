"""`mugraph bench files`: each file is answered, whatever becomes of the others."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from mugraph.checking import drawn, far, whole
from mugraph.cli import run
from mugraph.commands import bench_run, bench_worker
from mugraph.commands.bench import Json
from mugraph.commands.bench_files import whole_lines
from mugraph.commands.bench_journal import Journal
from mugraph.commands.bench_one import Asked, options_of
from mugraph.commands.bench_run import Run
from mugraph.commands.bench_worker import Worker
from mugraph.reports.many_files import Row, plot, summary
from mugraph.tune import device

PROBLEM = '''\
import torch
from torch import nn


class Model(nn.Module):
    """A product that is normalised."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size))

    def forward(self, x):
        y = x @ self.weight
        return y / (1.0 + (y * y).sum(dim=1, keepdim=True))


def get_inputs():
    return [torch.rand(16, 32)]


def get_init_inputs():
    return [32]
'''
DECLARED = """\
# mugraph: x=f16[16, 16]
def same(x):
    return x + 0
"""


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "driver_present", lambda: False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    files = tmp_path / "files"
    (files / "__pycache__").mkdir(parents=True)
    (files / "10_declared.py").write_text(DECLARED)
    (files / "2_problem.py").write_text(PROBLEM)
    (files / "broken.py").write_text("def f(:\n")
    (files / "broken_mugraph.py").write_text("")
    return files


def test_a_folder(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    kept, drawn = tmp_path / "kept.jsonl", tmp_path / "gains.svg"
    command = ["bench", "files", str(folder), "--json", "--budget", "2", "--resume", str(kept), "--plot", str(drawn)]
    status = run([*command, "--against", "eager"])
    captured = capfd.readouterr()
    document: Any = json.loads(captured.out)
    assert status == 1, "one file cannot be read"
    assert set(document) == {"device", "versions", "workloads", "files", "summary"}
    assert [Path(one["file"]).name for one in document["files"]] == ["broken.py", "2_problem.py", "10_declared.py"]
    broken, problem, _ = document["files"]
    assert "invalid syntax" in broken["errors"][0]
    by_file = {Path(row["file"]).name: row for row in document["workloads"]}
    assert "2_problem.py" in by_file
    for row in by_file.values():
        assert {"name", "status", "peers_us", "optimized_us", "speedup", "file", "right", "reason"} <= set(row)
        assert row["right"] is (True if row["offered"] else None)
        assert set(row["gains"]) <= {"eager"}
    assert by_file["2_problem.py"]["offered"]
    assert by_file["2_problem.py"]["gains"]["eager"] > 1.0
    whole = problem["kernelbench"]
    assert (whole["right"], whole["taken"], whole["calls"], whole["tolerance"]) == (True, 5, 5, 1e-4), whole
    assert document["summary"]["files"] == document["summary"]["answered"] == 3
    assert document["summary"]["wrong"] == 0
    assert document["summary"]["source"] == "estimated"
    assert drawn.read_text().startswith("<svg")
    assert "3/3" in captured.err

    kept.write_text(kept.read_text() + '{"key": "cut o')
    (folder / "10_declared.py").write_text("def nothing(): return 1\n")
    command.remove("--json")
    assert run([*command, "--against", "eager"]) == 1
    captured = capfd.readouterr()
    assert captured.err.count("(as it was)") == 2, "the one that has changed is run again"
    assert "3 of 3 files answered; 1 of 1 regions improved, 1 right, 0 wrong" in captured.out
    assert "faster than eager: 1; geometric mean ~" in captured.out
    assert all(json.loads(line) for line in kept.read_text().splitlines() if line != '{"key": "cut o')


def test_answers_count_for_what_was_asked(tmp_path: Path):
    file, kept, here = tmp_path / "a.py", tmp_path / "kept.jsonl", device.detect()
    file.write_text("x = 1\n")
    asked = Asked(1.0, "inline", "auto", "both", ["eager"], 10.0)
    Journal(kept, asked, here).keep(file, {"rows": []})
    assert Journal(kept, asked, here).of(file) == {"rows": []}
    assert Journal(kept, msgspec.structs.replace(asked, budget_s=2.0), here).of(file) is None
    assert Journal(kept, msgspec.structs.replace(asked, tuner="opevo"), here).of(file) is None
    assert Journal(kept, msgspec.structs.replace(asked, trials=100), here).of(file) is None
    assert Journal(None, asked, here).of(file) is None


def test_an_answer_within_a_limit_counts_with_another(tmp_path: Path):
    file, late, kept, here = tmp_path / "a.py", tmp_path / "late.py", tmp_path / "kept.jsonl", device.detect()
    for one in (file, late):
        one.write_text("x = 1\n")
    asked = Asked(1.0, "inline", "auto", "both", ["eager"], 10.0)
    cut_off: Json = {"rows": [], "failed": "it took longer than 10 s"}
    Journal(kept, asked, here).keep(file, {"rows": []})
    Journal(kept, asked, here).keep(late, cut_off)
    more, less = (Journal(kept, msgspec.structs.replace(asked, limit_s=limit), here) for limit in (20.0, 5.0))
    assert more.of(file) == less.of(file) == {"rows": []}
    assert Journal(kept, asked, here).of(late) == less.of(late) == cut_off
    assert more.of(late) is None, "there is more time for it"
    more.keep(late, {"rows": [], "kernelbench": None})
    assert Journal(kept, asked, here).of(late) == {"rows": [], "kernelbench": None}


def test_the_tuner_is_told_to_the_search():
    options = options_of(Asked(1.0, "inline", "auto", "both", [], 10.0, "g-bfs", 100))
    assert (options.bounds.tuner, options.bounds.trials) == ("g-bfs", 100)


def test_a_file_that_takes_too_long(folder: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["bench", "files", str(folder / "2_problem.py"), "--limit", "1", "--json"]) == 1
    captured = capfd.readouterr()
    [one] = json.loads(captured.out)["files"]
    assert one["failed"] == "it took longer than 1 s"
    assert json.loads(captured.out)["summary"]["answered"] == 0


NEVER_COMPARED = """
import json, sys, time
from pathlib import Path

file, out = json.loads(sys.stdin.readline())
Path(out + ".first").write_text(json.dumps({"rows": [], "file": file}))
time.sleep(1000)
"""


def test_an_answer_counts_whose_comparison_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As kept before it."""
    monkeypatch.setattr(bench_worker, "LEAST_S", -64.0)
    worker = Worker(Asked(1.0, "inline", "auto", "both", [], 60.0), tmp_path, {})
    process = subprocess.Popen([sys.executable, "-c", NEVER_COMPARED], stdin=subprocess.PIPE, start_new_session=True)
    with (tmp_path / "said").open("w+b") as said:
        monkeypatch.setattr(worker, "_process", process)
        monkeypatch.setattr(worker, "_said", said)
        answer = worker.answer(Path("a.py"))
    assert answer == {"rows": [], "file": "a.py"}
    assert process.poll() is not None
    worker.close()


def test_what_cannot_be_made_on_a_device_is_made_by_the_processor():
    def anywhere() -> torch.Tensor:
        return torch.rand(3)

    def not_there() -> torch.Tensor:
        made = torch.rand(3)
        if made.device.type != "cpu":
            raise RuntimeError("not here")
        return made

    made = [drawn.made_on(make, 7, torch.device("meta")) for make in (anywhere, not_there)]
    assert [one.device.type for one in made if isinstance(one, torch.Tensor)] == ["meta", "cpu"]
    again = drawn.made_on(anywhere, 7, torch.device("cpu"))
    assert isinstance(again, torch.Tensor)
    assert isinstance(made[1], torch.Tensor)
    assert torch.equal(made[1], again)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "which files? write, for example: mugraph bench files models/"),
        (["nowhere.py"], "nowhere.py does not exist"),
        (["--compare-with", "all", "."], "--compare-with is 'all'; it must be both, code or best"),
        (
            ["--against", "jax", "."],
            "there is no jax to compare with; there are eager, torch.compile, max-autotune, reduce-overhead",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    sentence: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(folder)
    assert run(["bench", "files", *arguments]) == 2
    assert capfd.readouterr().err == f"mugraph: {sentence}\n"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["llama"], "no model is called llama; there are net"),
        (["net", "a", "b"], "no model is called a, b; there are net"),
    ],
)
def test_models_that_are_not_there(names: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.py").write_text(PROBLEM)
    (tmp_path / "models" / "layers.py").write_text(DECLARED)
    assert run(["bench", "models", *names, "--samples", str(tmp_path)]) == 2
    assert capfd.readouterr().err == f"mugraph: {sentence}\n"
    assert run(["bench", "models", "--samples", str(tmp_path / "models")]) == 2
    assert capfd.readouterr().err == f"mugraph: {tmp_path}/models/models does not exist\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("return y", "return 1.01 * y"), "an element is off by"),
        (("x @ self", "x[:8] @ self"), "a result is (8, 32) torch.float32 instead of (16, 32) torch.float32"),
        (("return y / (1.0 + (y * y).sum(dim=1, keepdim=True))", "return y, y"), "2 results instead of 1"),
        (("1.0 + ", "(1.0 + 1e-7) + "), None),
    ],
)
@pytest.mark.parametrize("part", [1 << 26, 100])
def test_kernelbenchs_comparison(
    tmp_path: Path, change: tuple[str, str], why: str | None, part: int, monkeypatch: pytest.MonkeyPatch
):
    """Of files that differ by hand, with results in one part and in several."""
    monkeypatch.setattr(far, "PART", part)
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(PROBLEM)
    after.write_text(PROBLEM.replace(*change))
    found = whole.compare(before, after, torch.device("cpu"))
    assert found["right"] is (why is None)
    assert str(found["why"]).startswith(str(why))
    assert (found["calls"], found["trials"]) == (0, 1 if "instead of" in str(why) else 5)
    for name in ("mugraph_before", "mugraph_after"):
        sys.modules.pop(name, None)


CANCELS = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1)


def get_inputs():
    big = torch.randn(64, 512) * 1e4
    return [torch.cat((big, 1e-3 * torch.randn(64, 1), -big), 1)]
"""


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ("x.double().sum(1).float()", True),  # nearer to the result than PyTorch's own
        ("x.flip(1).sum(1) + 1000.0", False),
        ("x[:, :512].sum(1)", False),
    ],
)
def test_sums_that_cancel_are_compared_with_float64(tmp_path: Path, change: str, right: bool):
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(CANCELS)
    after.write_text(CANCELS.replace("x.sum(1)", change))
    found = whole.compare(before, after, torch.device("cpu"))
    assert found["right"] is right, found
    assert isinstance(found["worst"], float)
    assert found["worst"] > 1.0, "beyond the tolerance in any case"
    errors = found["from_float64"]
    assert isinstance(errors, dict)
    assert (errors["ours"] <= errors["pytorch"]) is right
    for name in ("mugraph_before", "mugraph_after"):
        sys.modules.pop(name, None)


def test_numbers_of_many_files():
    rows = [
        Row("a.py", "a:f", True, True, 2.0, 1.5, {"eager": 2.0, "torch.compile": 1.5}),
        Row("a.py", "a:g", True, True, 2.0, 0.5, {"eager": 2.0, "torch.compile": 0.5}),
        Row("b.py", "b:f", False, None, 1.0, 1.0, {"eager": 1.0, "torch.compile": 1.0}),
        Row("c.py", "c:f", False, None, 1.0, 1.0, {}),
    ]
    told: Any = summary(rows, 4, 3, measured=True)
    assert (told["offered"], told["right"], told["regions"]) == (2, 2, 4)
    assert told["faster_than"] == {"eager": 2, "torch.compile": 1}
    assert told["files_faster_than"] == {"eager": 1, "torch.compile": 1}
    assert told["geometric_mean"]["eager"] == pytest.approx(4 ** (1 / 3))
    assert told["geometric_mean_of_offered"]["torch.compile"] == pytest.approx(0.75**0.5)
    assert plot(rows, "a < b").count("<circle") == 8
    assert plot([], "none").startswith("<svg")


def test_times_of_whole_models_are_lines():
    times = {
        "device_us": {"eager": 1204.4, "mugraph": 703.0},
        "device_in_row_us": {"eager": 1198.0, "mugraph": 696.0},
        "called_us": {"eager": 1300.0},
        "in_row": {"eager": 38, "mugraph": 62},
        "refused": {"torch.compile": "RuntimeError: out of memory"},
    }
    assert [*whole_lines("llama", {"kernelbench": {"right": True, "times": times, "floor_us": 640.2}})] == [
        "llama, what its bytes take: 640 µs\n",
        "llama, replayed one at a time: eager 1204 µs, mugraph 703 µs\n",
        "llama, replayed in a row: eager 1198 µs, mugraph 696 µs\n",
        "llama, called in a row: eager 1300 µs\n",
        "llama, torch.compile: RuntimeError: out of memory\n",
    ]
    assert not [*whole_lines("llama", {"kernelbench": None})]


def test_files_side_by_side(folder: Path, capfd: pytest.CaptureFixture[str]):
    """As one after the other, in the order of the files."""
    command = ["bench", "files", str(folder), "--json", "--budget", "2", "--against", "eager"]
    documents: list[Any] = []
    for more in ([], ["--jobs", "3"]):
        assert run([*command, *more]) == 1, "one file cannot be read"
        documents.append(json.loads(capfd.readouterr().out))
    one, other = ([(row["file"], row["status"], row["right"]) for row in d["workloads"]] for d in documents)
    assert one == other
    assert [d["file"] for d in documents[0]["files"]] == [d["file"] for d in documents[1]["files"]]


@pytest.mark.parametrize("said", ["CUDA out of memory", "no kernel: there was too little memory: 8.00 GiB more"])
def test_out_of_memory_beside_others_is_run_once_more(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ended: list[str] = []

    def answer(worker: Worker, file: Path) -> dict[str, object]:
        full = file.name == "large.py" and not ended
        return {"rows": [], "errors": [said] if full else [], "seconds": 0.0}

    def end(_: Worker) -> None:
        ended.append("end")

    monkeypatch.setattr(Worker, "answer", answer)
    monkeypatch.setattr(Worker, "end", end)
    files = [tmp_path / name for name in ("a.py", "large.py", "z.py")]
    for file in files:
        file.write_text(file.name)
    asked, kept = Asked(1.0, "inline", "auto", "both", ["eager"], 10.0), tmp_path / "kept.jsonl"
    found = Run(asked, Journal(kept, asked, device.detect())).answers(files, 2)
    assert list(found) == files
    assert not any(one["errors"] for one in found.values())
    assert len(kept.read_text().splitlines()) == 3


def test_files_are_shared_out_among_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begun: list[tuple[str, Mapping[str, str]]] = []
    together = threading.Barrier(4)

    class Watched(Worker):
        def __init__(self, asked: Asked, folder: Path, environment: Mapping[str, str]) -> None:
            super().__init__(asked, folder, environment)
            self.told = environment

        def answer(self, file: Path) -> Json:
            first = not any(name == file.name for name, _ in begun)
            begun.append((file.name, self.told))
            if first:
                together.wait(20)
            return {"rows": [], "errors": ["CUDA out of memory"] if first else [], "seconds": 0.0}

    monkeypatch.setattr(bench_run, "Worker", Watched)
    files = [tmp_path / f"{name}.py" for name in "abcd"]
    for file in files:
        file.write_text("x = 1\n")
    asked = Asked(1.0, "inline", "auto", "both", ["eager"], 10.0)
    found = Run(asked, Journal(None, asked, device.detect()), devices=("3", "GPU-5a")).answers(files, 4)
    assert not any(one["errors"] for one in found.values())
    first, again = begun[:4], begun[4:]
    assert sorted(one["CUDA_VISIBLE_DEVICES"] for _, one in first) == ["3", "3", "GPU-5a", "GPU-5a"]
    assert {one["CUDA_VISIBLE_DEVICES"] for _, one in again} <= {"3", "GPU-5a"}
    folders = {(one["CUDA_VISIBLE_DEVICES"], one["MUGRAPH_SIDE_BY_SIDE"]) for _, one in first}
    assert len(folders) == len({folder for _, folder in folders}) == 2, "each device has locks of its own"


@pytest.mark.parametrize(("said", "words"), [(None, ("1", "2")), ("7, GPU-5a,GPU-5b", ("GPU-5a", "GPU-5b"))])
def test_devices_that_are_alike(said: str | None, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    names = ["NVIDIA L4", "NVIDIA H200", "NVIDIA H200"]
    monkeypatch.setattr(device, "driver_present", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", names.__getitem__)
    if said is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
    assert device.alike() == words


def test_no_file_begins_when_the_time_is_over(tmp_path: Path):
    file, asked = tmp_path / "a.py", Asked(1.0, "inline", "auto", "both", ["eager"], 10.0)
    file.write_text("x = 1\n")
    kept = tmp_path / "kept.jsonl"
    found = Run(asked, Journal(kept, asked, device.detect()), within_s=-1.0).answers([file], 1)
    assert found[file]["failed"] == "not begun within -1 s"
    assert kept.read_text() == "", "it is run the next time"


BASE = """
import torch


class Base(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, 32))

    def forward(self, x):
        y = x @ self.weight
        return y / (1.0 + (y * y).sum(dim=1, keepdim=True))
"""
DERIVED = """
import torch
from base_of_both import Base


class Model(Base):
    def __init__(self, size):
        super().__init__(size)


def get_inputs():
    return [torch.rand(16, 64)]


def get_init_inputs():
    return [64]
"""


def test_a_model_whose_forward_is_in_another_file(folder: Path, capfd: pytest.CaptureFixture[str]):
    """Both files' regions are its answer, and the comparison is of both as they are edited."""
    (folder / "base_of_both.py").write_text(BASE)
    (folder / "derived.py").write_text(DERIVED)
    assert run(["bench", "files", str(folder / "derived.py"), "--budget", "2", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    [one] = document["files"]
    [row] = document["workloads"]
    assert (Path(row["file"]).name, row["offered"], row["right"]) == ("base_of_both.py", True, True)
    whole_model = one["kernelbench"]
    assert (whole_model["right"], whole_model["taken"], whole_model["calls"]) == (True, 5, 5)
    assert (folder / "base_of_both.py").read_text() == BASE
