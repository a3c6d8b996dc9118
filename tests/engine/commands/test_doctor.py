"""`mugraph doctor`: what does not fit is said with what to do about it."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.reports import findings
from mugraph.reports.findings import findings as found
from mugraph.tune.device import detect


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path))


def test_here_it_works(capsys: pytest.CaptureFixture[str]):
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    what = {finding["what"]: finding for finding in document["findings"]}
    assert {"Python", "torch", "triton", "GPU", "store"} <= what.keys()
    assert all(finding["state"] in ("ok", "note") for finding in what.values())
    assert run(["doctor"]) == 0
    assert "torch" in capsys.readouterr().out


@pytest.mark.parametrize(("have", "advice"), [(None, "pip install 'torch"), ("1.13.0", "pip install 'torch>=")])
def test_another_torch_is_a_problem(monkeypatch: pytest.MonkeyPatch, have: str | None, advice: str):
    ordinary = findings.version

    def version(name: str) -> str:
        if name != "torch":
            return ordinary(name)
        if have is None:
            raise PackageNotFoundError(name)
        return have

    monkeypatch.setattr(findings, "version", version)
    [torch] = [finding for finding in found(detect()) if finding.what == "torch"]
    assert torch.state == "problem"
    assert torch.advice is not None
    assert torch.advice.startswith(advice)
    assert run(["doctor"]) == 1
