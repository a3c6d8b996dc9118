"""`mugraph bench`: the contract's document, and that an estimate never passes for a measurement."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.dependencies import PACKAGES
from mugraph.tune import device

SAMPLE = """\
import torch


# mugraph: x=f16[16, 256], w=f16[256, 512], a=f16[256, 16], b=f16[16, 512]
def adapted(x, w, a, b):
    return x @ w + (x @ a) @ b
"""


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(device, "driver_present", lambda: False)
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "adapter.py").write_text(SAMPLE)
    return folder


def test_document_without_a_gpu(samples: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["bench", "adapter", "--samples", str(samples), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert set(document) == {"device", "versions", "workloads"}
    assert document["device"]["kind"] == "none"
    assert {"mugraph", "torch", "triton"} <= set(document["versions"])
    (workload,) = document["workloads"]
    assert set(workload) == {
        "name", "status", "floor_us", "peers_us", "best_peer", "best_peer_us", "optimized_us", "speedup", "search_s",
        "tune_s", "spent_s", "estimates_us", "code_us", "code_speedup", "as_called",
        "kernels",
    }  # fmt: skip
    assert workload["name"] == "adapter:adapted"
    assert "estimated only" in workload["status"]
    assert workload["peers_us"] == {}
    assert workload["best_peer_us"] == min(workload["estimates_us"].values())
    assert workload["as_called"] is None
    assert workload["kernels"]
    assert all(re.match(r"kernel \w+; grid .*launch warps=\d+ stages=\d+", one) for one in workload["kernels"])
    assert "estimated" in workload["best_peer"]
    # x, w, a, b and the output, once each, at an H100's 3.0 TB/s
    moved = 2 * (16 * 256 + 256 * 512 + 256 * 16 + 16 * 512 + 16 * 512)
    assert workload["floor_us"] == pytest.approx(moved / 3.0e6)


def test_unknown_sample(samples: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["bench", "nothing", "--samples", str(samples)]) == 2
    assert "no sample is called nothing; there are adapter" in capfd.readouterr().err
    assert run(["bench", "--samples", str(samples), "--executor", "dask"]) == 2
    assert "there is no executor 'dask'" in capfd.readouterr().err


def test_no_samples(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["bench", "--samples", str(tmp_path)]) == 2
    assert "--samples" in capfd.readouterr().err


def test_samples_import_only_what_is_installed_with_mugraph():
    """`make demo` installs no more. What only a type checker reads does not count."""
    for path in sorted((Path(__file__).parents[3] / "samples").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.partition(".")[0]
                assert top in PACKAGES or top in sys.stdlib_module_names, f"{path.name} imports {top}"
