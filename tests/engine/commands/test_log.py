"""What is logged at level info is shown with --verbose, that of child processes too, and only then."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mugraph import child_log
from mugraph.cli import run

READS = """\
import torch
from torch import nn


# mugraph: x=f32[4, 8]
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = torch.rand(3).tolist()

    def forward(self, x):
        return x * self.rates[1]
"""


@pytest.fixture(autouse=True)
def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    logger = logging.getLogger("mugraph")
    before = logger.handlers[:], logger.level, logger.propagate
    logger.handlers[:], logger.level, logger.propagate = [], logging.NOTSET, True  # whatever other tests have shown
    yield
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.mark.parametrize("arguments", [["-v", "optimize"], ["optimize", "-v"]])
def test_verbose(tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]):
    path = tmp_path / "model.py"
    path.write_text(READS)
    assert run(["optimize", str(path), "--no-store"]) == 0
    assert capfd.readouterr().err == ""
    assert run([*arguments, str(path), "--no-store"]) == 0
    assert "INFO mugraph.trace: Block is built with real tensors: " in capfd.readouterr().err


def test_a_childs_log_among_its_other_lines(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture):
    child_log.write()
    logger = logging.getLogger("mugraph.somewhere")
    logger.debug("not shown")
    os.write(2, b"without an end")
    try:
        raise ValueError("not today")
    except ValueError:
        logger.info("it failed: %s", "twice", exc_info=True)
    os.write(2, b"last words\n")
    said = capfd.readouterr().err
    logging.getLogger("mugraph").handlers[:], logging.getLogger("mugraph").propagate = [caplog.handler], False
    assert child_log.pass_on(said.split("\n")) == ["without an end", "last words", ""]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("mugraph.somewhere", logging.INFO)
    assert record.message.startswith("it failed: twice\nTraceback")
    cut = said.partition("last words")[0][:-10]
    assert child_log.pass_on(cut.split("\n"))[0] == "without an end", "cut off in the middle, it is a line like others"
