"""Edited files as the file system sees them: permissions, links, and writes that fail."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from mugraph.edit.apply import EditError, apply_files
from mugraph.edit.source import files


def test_permissions_and_links_stay(tmp_path, maker, source, part):
    real = tmp_path / "real.py"
    real.write_text(source)
    real.chmod(0o750)
    link = tmp_path / "link.py"
    link.symlink_to(real)
    done = apply_files(link, [maker.plan(source, part)], maker.kernels)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o750
    assert done.module == tmp_path / "real_mugraph.py"
    assert done.module.stat().st_mode & 0o111 == 0


def test_a_folder_that_cannot_be_written(maker, source, part):
    folder = Path(tempfile.mkdtemp())
    path = folder / "model.py"
    path.write_text(source)
    folder.chmod(0o555)  # readable, so that only writing fails
    user = os.geteuid()
    try:
        if user == 0:  # root may write everywhere
            os.seteuid(65534)
        with pytest.raises(EditError, match=r"model.* cannot be written \(Permission denied\); nothing was changed\."):
            apply_files(path, [maker.plan(source, part)], maker.kernels)
        assert path.read_text() == source
        assert list(folder.iterdir()) == [path]
    finally:
        os.seteuid(user)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_when_the_second_file_fails_the_first_is_taken_back(monkeypatch, gated_file, maker, source, part):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(EditError, match="No space left on device"):
        apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    assert gated_file.read_text() == source
    assert list(gated_file.parent.iterdir()) == [gated_file]
