"""The store: what is put comes back, from any process, and a bad file is a sentence and a new start."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mugraph.store import Store
from mugraph.store.place import cache_folder
from mugraph.store.results import FILE, SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / FILE


def script(code: str, path: Path) -> subprocess.Popen[str]:
    text = f"from pathlib import Path\nfrom mugraph.store import Store\nstore = Store.open(Path({str(path)!r}))\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def test_put_and_get(path):
    document = {"speedup": 1.24, "sizes": {"m": 16}, "why": None, "μ": ["a", 1]}
    with Store.open(path) as store:
        assert store.get("k") is None
        store.put("k", {"old": True})
        store.put("k", document)
        assert store.get("k") == document
    with Store.open(path) as again:
        assert again.get("k") == document
        assert again.get("other") is None
        assert again.notices == []


def test_keys_keep_their_order(path):
    """Generated kernels name their sizes in the order of the result they are made of."""
    with Store.open(path) as store:
        store.put("k", {"sizes": {"k": 1, "b": 2, "a": 3}})
        document = store.get("k")
    assert document is not None
    assert list(document["sizes"]) == ["k", "b", "a"]


def test_what_is_no_json_is_refused_and_changes_nothing(path):
    with Store.open(path) as store:
        store.put("k", {"a": 1})
        with pytest.raises(TypeError):
            store.put("k", {"a": object()})
        with pytest.raises(ValueError, match="JSON"):
            store.put("k", {"a": float("nan")})
        assert store.get("k") == {"a": 1}


def test_the_file_uses_a_write_ahead_log(path):
    with Store.open(path) as store:
        store.put("k", {})
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)


def test_two_processes_write_at_once(path):
    code = "import sys\nfor i in range(100): store.put(f'{name}{i}', {'by': name, 'i': i})\nassert not store.notices"
    processes = [script(f"name = {name!r}\n{code}", path) for name in ("a", "b")]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with Store.open(path) as store:
        for name in ("a", "b"):
            for i in (0, 57, 99):
                assert store.get(f"{name}{i}") == {"by": name, "i": i}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_survives_an_end_in_mid_write(how, path):
    process = script("i = 0\nwhile True:\n    store.put('k', {'i': i, 'long': 'x' * 200_000}); i += 1; print(i)", path)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    time.sleep(0.05)
    os.kill(process.pid, how)
    process.communicate(timeout=30)
    with Store.open(path) as store:
        document = store.get("k")
        assert document is not None
        assert len(str(document["long"])) == 200_000
        store.put("after", {"a": 1})
        assert store.get("after") == {"a": 1}
        assert store.notices == []


def test_a_corrupt_file_is_set_aside(path, caplog):
    path.parent.mkdir()
    path.write_bytes(b"this is no database, " * 1000)
    with Store.open(path) as store:
        assert store.get("k") is None
        store.put("k", {"a": 1})
        assert store.get("k") == {"a": 1}
        (notice,) = store.notices
    assert "set aside" in notice
    assert notice in caplog.text
    (aside,) = path.parent.glob("*aside*")
    assert aside.read_bytes().startswith(b"this is no database")


def test_damage_within_an_open_file_is_survived(path):
    with Store.open(path) as store:
        for i in range(50):
            store.put(f"k{i}", {"long": "x" * 5_000})
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with Store.open(path) as store:
        assert store.get("k7") is None
        store.put("k7", {"a": 1})
        assert store.get("k7") == {"a": 1}
        assert len(store.notices) == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE results SET document = replace(document, '7', '8')",
        "UPDATE results SET document = '{\"a\": 8}'",
        "UPDATE results SET document = (SELECT document FROM results WHERE key = 'other')",
    ],
)
def test_an_entry_that_was_changed_by_hand_is_said_and_not_used(path, change):
    with Store.open(path) as store:
        store.put("k", {"a": 7})
        store.put("other", {"a": 9})
        with sqlite3.connect(path) as connection:
            connection.execute(f"{change} WHERE key = 'k'")
        assert store.get("k") is None
        (notice,) = store.notices
        assert "was changed since it was written; it is not used" in notice
        assert store.get("other") == {"a": 9}
        store.put("k", {"a": 7})
        assert store.get("k") == {"a": 7}


def test_what_an_older_layout_holds_is_dropped(path):
    with Store.open(path) as store:
        store.put("k", {"a": 7})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET document = '{\"a\": 7}'")
        connection.execute(f"PRAGMA user_version = {SCHEMA - 1}")
    with Store.open(path) as store:
        assert store.get("k") is None
        assert store.notices == []
        store.put("k", {"a": 1})
    with Store.open(path) as store:
        assert store.get("k") == {"a": 1}


def test_a_newer_schema_is_set_aside_whole(path):
    with Store.open(path) as store:
        store.put("k", {"a": 1})
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with Store.open(path) as store:
        assert store.get("k") is None
        assert "newer mugraph" in store.notices[0]
    (aside,) = (file for file in path.parent.glob("*aside*") if not file.name.endswith(("-wal", "-shm")))
    with sqlite3.connect(aside) as connection:
        assert connection.execute("SELECT document FROM results").fetchone()[0].endswith('\n{"a": 1}')


def test_a_folder_that_cannot_be_made_means_memory(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with Store.open(tmp_path / "file" / FILE) as store:
        store.put("k", {"a": 1})
        assert store.get("k") == {"a": 1}
        (notice,) = store.notices
    assert "last until mugraph ends" in notice


def test_a_file_that_is_a_folder_means_memory(path):
    path.mkdir(parents=True)
    with Store.open(path) as store:
        store.put("k", {"a": 1})
        assert store.get("k") == {"a": 1}
        assert len(store.notices) == 1


def test_where_the_users_store_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("MUGRAPH_CACHE_DIR", raising=False)
    assert cache_folder() == tmp_path / "xdg" / "mugraph"
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    with Store.open() as store:
        store.put("k", {"a": 1})
    assert (tmp_path / "own" / FILE).exists()


def test_importing_the_store_imports_no_database():
    code = "import sys, mugraph.store, mugraph.store.place; print(sorted({'sqlalchemy', 'torch'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
