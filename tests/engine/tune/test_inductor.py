"""PyTorch's compiler, made ready in the measuring process: which assembler its kernels and ours are compiled with."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mugraph.tune import inductor
from torch._inductor import async_compile
from torch._inductor.runtime import compile_tasks
from triton.backends.nvidia.compiler import get_ptxas_version

VARIABLE = "TRITON_PTXAS_PATH"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(inductor, "_found", [])
    get_ptxas_version.cache_clear()
    yield
    get_ptxas_version.cache_clear()


@pytest.fixture
def ptxas(tmp_path: Path) -> str:
    """An assembler of another version than Triton's own."""
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 99.0, V99.0.1'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def sets(path: str) -> Callable[[], None]:
    """As PyTorch does it in its own processes, and in their parent at the first kernel that it compiles itself: where
    nothing is set, and once."""
    asked: list[None] = []

    def choose() -> None:
        if VARIABLE not in os.environ and not asked:
            os.environ[VARIABLE] = path
        asked.append(None)

    return choose


def test_peers_are_looked_up_as_pytorchs_processes_have_compiled_them(
    ptxas: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is compiled for us as our processes have: the version is a part of every key of Triton's cache."""
    own = get_ptxas_version(90)  # read before: Triton remembers it
    monkeypatch.setattr(compile_tasks, "_set_triton_ptxas_path", sets(ptxas))
    for _ in range(2):
        with inductor.assembler():
            assert "99.0" in get_ptxas_version(90)
            with inductor.assembler():
                assert "99.0" in get_ptxas_version(90)
            assert "99.0" in get_ptxas_version(90)
        assert get_ptxas_version(90) == own
        assert VARIABLE not in os.environ


def test_what_the_user_has_chosen_stays(ptxas: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_tasks, "_set_triton_ptxas_path", sets(str(tmp_path / "of_pytorch")))
    monkeypatch.setenv(VARIABLE, ptxas)
    with inductor.assembler():
        assert os.environ[VARIABLE] == ptxas
    assert os.environ[VARIABLE] == ptxas
    assert "99.0" in get_ptxas_version(90)


def test_a_pytorch_that_chooses_in_another_way_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compile_tasks, "_set_triton_ptxas_path")
    own = get_ptxas_version(90)
    with inductor.assembler():
        assert VARIABLE not in os.environ
        assert get_ptxas_version(90) == own


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What torch.compile was asked for, by functions that run as they are, on the CPU."""
    found: list[object] = []
    zeros = torch.zeros
    monkeypatch.setattr(torch, "compile", lambda function: found.append(function) or function)
    monkeypatch.setattr(torch, "zeros", lambda count, device: zeros(count))
    return found


def test_it_is_ready_once_the_processes_are_up(compiled: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [False, False, False, True]
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: 8)
    processes = SimpleNamespace(use_process_pool=lambda: answers.pop(0))
    monkeypatch.setattr(async_compile, "AsyncCompile", processes)
    up = inductor.begin()
    assert len(answers) == 3, "they are started at once"
    inductor.make_ready(up)
    assert compiled
    assert not answers


def test_where_there_are_no_processes_none_is_waited_for(
    compiled: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: 1)
    monkeypatch.delattr(async_compile, "AsyncCompile")
    inductor.make_ready(inductor.begin())
    assert compiled


def test_a_pytorch_with_other_processes_starts_them_itself(
    compiled: list[object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: 8)
    monkeypatch.delattr(async_compile, "AsyncCompile")
    with caplog.at_level("INFO", "mugraph.tune"):
        inductor.make_ready(inductor.begin())
    assert "could not be started early" in caplog.text
    assert compiled


def test_a_compiler_that_fails_is_the_first_compilations_trouble(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", fails)
    with caplog.at_level("INFO", "mugraph.tune"):
        inductor.make_ready(lambda: True)
    assert "could not be made ready: RuntimeError: no compiler" in caplog.text
