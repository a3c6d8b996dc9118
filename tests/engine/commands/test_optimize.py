"""`mugraph optimize` on a real file: the document's contract, applying, reverting, verifying, a second run, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.protocol.settings import EngineSettings
from mugraph.store import Store
from mugraph.tune.tuners.choose import cannot
from mugraph.worker.answers import wrong_setting

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[8, 512], w1=f16[512, 512], w2=f16[512, 512]
def gated(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    gate = F.silu(x @ w1)  # the gate
    return gate * (x @ w2)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return path


def optimized(model: Path, capfd: pytest.CaptureFixture[str], *more: str) -> dict:
    assert run(["optimize", str(model), "--json", *more]) == 0
    return json.loads(capfd.readouterr().out)


def test_the_same_with_a_search_in_other_processes(model: Path, capfd: pytest.CaptureFixture[str]):
    """The same kernel to the letter: what is found, and in which order, does not depend on who works on it."""
    (here,) = optimized(model, capfd, "--no-measure", "--no-store")["regions"]
    (there,) = optimized(model, capfd, "--no-measure", "--no-store", "--executor", "processes:2")["regions"]
    assert there["kernel_source"] == here["kernel_source"]
    assert there["search"]["topologies"] == here["search"]["topologies"]


def test_an_unknown_executor_is_wrong_usage(model: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["optimize", str(model), "--no-store", "--executor", "dask"]) == 2
    assert "there is no executor 'dask'" in capfd.readouterr().err


def test_document(model: Path, capfd: pytest.CaptureFixture[str]):
    document = optimized(model, capfd, "--no-measure")
    assert set(document) == {"file", "device", "regions"}
    assert set(document["device"]) == {"name", "kind", "target"}
    (region,) = document["regions"]
    assert set(region) == {
        "function", "range", "status", "reason", "inputs", "kernels", "block_ops", "mugraph", "verification", "timing",
        "search", "kernel_source",
    }  # fmt: skip
    assert region["function"] == "gated"
    assert region["range"]["start"] == {"line": 6, "character": 4}
    assert region["range"]["end"] == {"line": 7, "character": 26}
    assert region["status"] == "improved"
    assert region["inputs"][0] == {"name": "x", "shape": [8, 512], "dtype": "f16"}
    assert region["kernels"] == 1
    verification = region["verification"]
    assert set(verification) == {
        "passed", "lax", "repetitions", "sizes", "bound", "max_rel_error", "ulps", "same_bits", "text",
        "proof", "ranges", "lowering",
    }  # fmt: skip
    (proof,) = verification["proof"]
    assert proof["proved"] is True
    assert min(proof["sizes"].values()) > 1
    assert verification["ranges"] == [None]  # of its kernel: no size of it varies
    assert verification["passed"] is True
    assert verification["bound"] < 1e-9
    assert 0 < verification["max_rel_error"] < 1e-2
    timing = region["timing"]
    assert set(timing) == {
        "baseline_us", "optimized_us", "speedup", "peers_us", "source",
        "estimates_us", "best_peer", "best_speedup", "as_called", "method",
    }  # fmt: skip
    assert timing["source"] == "estimated"
    assert timing["peers_us"] == {}
    assert timing["as_called"] is None
    assert timing["baseline_us"] == timing["estimates_us"]["eager"]
    assert timing["speedup"] == pytest.approx(timing["baseline_us"] / timing["optimized_us"])
    assert 1 < timing["best_speedup"] <= timing["speedup"]
    assert "what PyTorch would run" in timing["method"]
    search = region["search"]
    assert set(search) == {"first_verified_s", "total_s", "topologies", "candidates", "complete"}
    assert search["complete"] is True
    assert 0 < search["first_verified_s"] <= search["total_s"]
    compile(region["kernel_source"], "kernel.py", "exec")


def test_what_a_kernel_must_be_faster_than_is_one_of_three(model: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["optimize", str(model), "--no-measure", "--compare-with", "nothing"]) == 2
    assert "--compare-with is 'nothing'; it must be both, code or best" in capfd.readouterr().err


def test_tuners_that_are_not_here_are_said(
    model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert run(["optimize", str(model), "--tuner", "nothing"]) == 2
    assert (
        "--tuner is 'nothing'; it must be walk, mcfuser, opevo, random, g-bfs, n-a2c or boosted"
        in capfd.readouterr().err
    )
    assert run(["optimize", str(model), "--trials", "0"]) == 2
    assert "--trials" in capfd.readouterr().err
    monkeypatch.setattr("mugraph.tune.tuners.choose.installed", lambda module: False)
    for command in (["optimize", str(model)], ["bench"], ["bench", "files", str(model)]):
        assert run([*command, "--tuner", "boosted"]) == 2
        assert "the tuner boosted needs scikit-learn" in capfd.readouterr().err
    assert wrong_setting(EngineSettings(tuner="boosted")) == cannot("boosted")
    assert wrong_setting(EngineSettings(tuner="opevo")) is None


def test_the_report_says_that_a_gain_is_an_estimate_and_where_the_time_went(
    model: Path, capfd: pytest.CaptureFixture[str]
):
    assert run(["optimize", str(model), "--no-measure", "-v"]) == 0
    said = capfd.readouterr()
    first = next(line for line in said.out.splitlines() if line.startswith("gated"))
    assert "by estimate" in first
    (took,) = [line for line in said.err.splitlines() if " took: " in line]
    assert {"trace", "search", "verification"} <= set(took.replace(",", "").split())


def test_another_target_is_named(model: Path, capfd: pytest.CaptureFixture[str]):
    assert optimized(model, capfd, "--no-measure", "--target", "h200")["device"]["target"] == "h200"
    assert run(["optimize", str(model), "--no-measure", "--target", "h200"]) == 0
    assert "times are estimates for an H200" in " ".join(capfd.readouterr().out.split())


def test_verify_takes_what_optimize_found(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    found = tmp_path / "found.json"
    document = optimized(model, capfd)
    found.write_text(json.dumps(document))
    assert run(["verify", "--ugraph", str(found), f"{model}:gated", "--json"]) == 0
    (graph,) = json.loads(capfd.readouterr().out)["graphs"]
    assert set(graph) == {
        "index", "passed", "reason", "lax", "repetitions", "bound", "max_rel_error", "ulps", "proof", "seed",
        "lowering",
    }  # fmt: skip
    assert graph["passed"] is True

    model.write_text(TEXT.replace("gate * (x @ w2)", "gate + (x @ w2)"))
    assert run(["verify", "--ugraph", str(found), f"{model}:gated", "--json"]) == 1
    (graph,) = json.loads(capfd.readouterr().out)["graphs"]
    assert graph["passed"] is False
    assert graph["reason"]


def test_apply_and_revert(model: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["optimize", str(model), "--apply"]) == 0
    report = capfd.readouterr().out
    assert "ESTIMATED" in report or "measured on" in report
    assert "Write it with" not in report, "it is written"
    assert report.index("1 improved") < report.index("wrote ")
    edited = model.read_text()
    assert "gated_fits(x, w1, w2)" in edited
    assert "# the gate" in edited
    module = model.with_name("model_mugraph.py")
    assert module.exists()
    assert run(["revert", str(model)]) == 0
    assert model.read_text() == TEXT
    assert not module.exists()


def test_apply_that_wrote_all_it_offered(model: Path, capfd: pytest.CaptureFixture[str]):
    """Status 0, though another function fails; without --apply it is a failure. What is not written is one as well."""
    model.write_text(TEXT + "\n\n# mugraph: x=f16[8, 8]\ndef fails(x):\n    raise ValueError('not today')\n")
    assert run(["optimize", str(model)]) == 1
    assert "Write it with" in capfd.readouterr().out
    assert run(["optimize", f"{model}:fails", "--apply"]) == 1
    assert "nothing to write" in capfd.readouterr().out
    assert run(["optimize", str(model), "--apply"]) == 0
    out = capfd.readouterr().out
    assert "1 improved" in out
    assert "1 failed" in out
    assert "wrote " in out


def test_a_comment_that_is_not_read_is_said(model: Path, capfd: pytest.CaptureFixture[str]):
    model.write_text(TEXT + "\n# mugraph: x=f16[8]\n")
    assert run(["optimize", str(model)]) == 0
    err = capfd.readouterr().err
    assert f"mugraph: {model.name}, line 10: this “# mugraph:” comment is not read" in err


def test_second_run_comes_from_the_store(model: Path, capfd: pytest.CaptureFixture[str]):
    first = optimized(model, capfd)
    second = optimized(model, capfd)
    assert first == second  # the search's own seconds included: nothing was searched again
    again = optimized(model, capfd, "--no-store")
    assert again["regions"][0]["search"]["total_s"] != first["regions"][0]["search"]["total_s"]


def test_interrupted(model: Path):
    """Exit status 130, one sentence, the store as good as before, and no process left behind."""
    child = subprocess.Popen(
        [sys.executable, "-m", "mugraph.cli", "optimize", str(model), "-v"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    assert child.stderr is not None
    for line in child.stderr:
        if "first verified" in line:  # in the middle of the search
            break
    child.send_signal(signal.SIGINT)
    err = child.stderr.read()
    assert child.wait(timeout=30) == 130, err
    assert err.strip().splitlines()[-1] == "mugraph: interrupted"
    assert "Traceback" not in err
    with Store.open() as store:
        assert store.get("anything") is None
        assert store.notices == []
    deadline = time.monotonic() + 5
    while _alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child.pid)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
