"""The server as a process: how it is started, what it brings along, and how soon it answers."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.server.conftest import MakeEditor
from tests.server.support.editor import FULL
from tests.server.support.texts import IMPROVED

_IMPORTED = """
import json, sys
import mugraph_server.main, mugraph_server.server
print(json.dumps(sorted(sys.modules)))
"""


def test_it_brings_neither_torch_nor_the_engine_along() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stdout)
    roots = {name.partition(".")[0] for name in modules}
    assert roots & {"torch", "triton", "z3", "numpy", "sqlalchemy", "libcst", "igraph", "typer"} == set()
    of_the_engine = {name for name in modules if name.startswith("mugraph.")}
    light = {"protocol", "targets", "version"}  # what may be said, the names of targets among it
    assert all(name.split(".")[1] in light for name in of_the_engine), of_the_engine


def test_it_is_ready_soon(editor: MakeEditor) -> None:
    """Processor time: on a busy machine the clock says little. The limit is for one that also writes the bytecode of
    its imports; what it takes otherwise is printed by `make bench-server`."""
    used = psutil.Process(editor().process.pid).cpu_times()
    print(f"ready after {used.user + used.system:.2f} s of processor time")
    assert used.user + used.system < 4.0


@pytest.mark.parametrize(
    ("arguments", "status"), [([], 2), (["--stdio", "--tcp", "0"], 2), (["--tcp", "x"], 2), (["--help"], 0)]
)
@pytest.mark.parametrize("command", [["-m", "mugraph_server"], ["-m", "mugraph", "server"]])
def test_wrong_usage_is_said_on_standard_error(command: list[str], arguments: list[str], status: int) -> None:
    done = subprocess.run([sys.executable, *command, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    if status:
        assert done.stdout == ""
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_one_sentence(editor: MakeEditor) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "mugraph_server", "--tcp", str(port)], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert re.search(rf"port {port} cannot be used", done.stderr)
    assert "Traceback" not in done.stderr


def test_the_command_line_starts_it(tmp_path: Path) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
    done = subprocess.run(
        [sys.executable, "-m", "mugraph", "server", "--stdio"],
        input=b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        capture_output=True,
        timeout=60,
    )
    assert b'"name": "mugraph"' in done.stdout
    assert done.returncode == 1  # the input ended without a shutdown


def test_prints_do_not_reach_the_protocol(editor: MakeEditor, root: Path, tmp_path: Path) -> None:
    """Not even of what a library brings along, while the server starts and later: they are on standard error."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "def shout():\n"
        "    while True:\n"
        "        time.sleep(0.2)\n"
        "        if 'mugraph_server.server' in sys.modules: print('a stray print', flush=True)\n"
        "threading.Thread(target=shout, daemon=True).start()\n"
    )
    client = editor(env={"PYTHONPATH": str(site)})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    client.until(lambda: "a stray print" in client.stderr)
    assert client.garbage == b""


def test_positions_are_utf16_whatever_the_client_names_first(editor: MakeEditor, root: Path) -> None:
    client = editor(capabilities={**FULL, "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}})
    assert client.capabilities_of_server["positionEncoding"] == "utf-16"
    uri = client.open(root / "model.py", IMPROVED.replace("return torch", 'return "𝄞μ" and torch'))
    (found,) = client.wait_codes(uri, "improved")
    assert found["range"]["end"]["character"] == 28 + len('"𝄞μ" and ') + 1
    client.change(uri, (5, 11), (5, 25 - 4), "")
    assert client.texts[uri] == IMPROVED
    client.save(uri)
    client.until(lambda: [d["range"]["end"]["character"] for d in client.diagnostics(uri) or []] == [28])
