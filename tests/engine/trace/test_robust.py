"""Whatever a file holds, tracing it gives an answer in a sentence."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.trace.tracer import trace_file

Tracer = Callable[..., Trace]
GOOD = "\n# mugraph: x=f32[4, 8], w=f32[8, 8]\ndef f(x, w):\n    return x @ w\n"


def error_of(trace: Trace) -> str:
    assert len(trace.errors) == 1, trace.errors
    assert "\n" not in trace.errors[0]
    assert "Traceback" not in trace.errors[0]
    return trace.errors[0]


def with_status(trace: Trace, status: str) -> Region:
    found = [region for region in trace.regions if region.status == status]
    assert len(found) == 1, trace
    assert found[0].reason
    assert "\n" not in found[0].reason
    return found[0]


def test_a_missing_path() -> None:
    assert "does not exist" in error_of(trace_file(Path("/nowhere/at/all.py")))


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in error_of(trace_file(tmp_path))


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_bytes(b"")
    assert trace_file(path) == Trace(str(path))


def test_no_python(trace: Tracer) -> None:
    assert "no valid Python" in error_of(trace("def f(:\n    pass\n"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(b"x = '\xff\xfe'\n")
    assert "cannot be read" in error_of(trace_file(path))


def test_null_bytes(tmp_path: Path) -> None:
    path = tmp_path / "null.py"
    path.write_bytes(b"x = 1\x00\n")
    assert "no valid Python" in error_of(trace_file(path))


def test_brackets_too_deep_to_parse(tmp_path: Path) -> None:
    path = tmp_path / "deep.py"
    path.write_text("x = " + "(" * 5000 + ")" * 5000)
    assert "no valid Python" in error_of(trace_file(path))


def test_an_expression_of_a_thousand_terms(trace: Tracer) -> None:
    terms = " + ".join(["x"] * 1000)
    found = trace(f"# mugraph: x=f32[4, 8], w=f32[8, 8]\ndef f(x, w):\n    return ({terms}) @ w\n")
    assert found.operators == 1000


def test_an_exception_at_import(trace: Tracer) -> None:
    assert "cannot be imported: ValueError: no luck (line 10)" in error_of(
        trace(GOOD + "raise ValueError('no luck')\n")
    )


@pytest.mark.usefixtures("whole_process")
def test_a_missing_library(trace: Tracer) -> None:
    assert "No module named 'no_such_library'" in error_of(trace("import no_such_library\n" + GOOD))


@pytest.mark.usefixtures("whole_process")
def test_exit_at_import(trace: Tracer) -> None:
    assert "SystemExit" in error_of(trace(GOOD + "raise SystemExit(3)\n"))


@pytest.mark.usefixtures("whole_process")
def test_the_end_of_the_process(trace: Tracer) -> None:
    assert "ended with status 7" in error_of(trace(GOOD + "import os\nos._exit(7)\n"))


@pytest.mark.usefixtures("whole_process")
def test_an_abort_of_the_process(trace: Tracer) -> None:
    assert "killed by signal 6" in error_of(trace(GOOD + "import os\nos.abort()\n"))


def test_an_endless_loop_is_stopped_with_what_it_started(trace: Tracer, tmp_path: Path) -> None:
    """In a fork: the four seconds are the user's code's own, however long an import takes here."""
    beat = tmp_path / "beat"
    child = f"while true; do date +%N > {beat}; sleep 0.1; done"
    start = time.monotonic()
    source = GOOD + f"import subprocess\nsubprocess.Popen(['sh', '-c', {child!r}])\nwhile True: pass\n"
    found = trace(source, timeout_s=4)
    assert "still running after 4 s" in error_of(found)
    assert time.monotonic() - start < 20
    assert beat.exists()
    last = beat.read_text()
    time.sleep(0.5)
    assert beat.read_text() == last


@pytest.mark.usefixtures("whole_process")
def test_printing_stays_out_of_ours(trace: Tracer, capfd: pytest.CaptureFixture[str]) -> None:
    found = trace("import os\nprint('noise')\nos.write(1, b'more noise')\n" + GOOD)
    assert [region.text for region in found.regions] == ["x @ w"]
    assert capfd.readouterr() == ("", "")


def test_an_exception_in_the_function(trace: Tracer) -> None:
    region = with_status(trace("# mugraph: x=f32[4, 8]\ndef f(x):\n    raise RuntimeError('not today')\n"), "failed")
    assert region.reason == "f raises RuntimeError: not today (line 8)"
    assert (region.function, region.range.start.line) == ("f", 6)


def test_shapes_that_do_not_fit(trace: Tracer) -> None:
    found = trace("# mugraph: x=f32[4, 8], w=f32[9, 8]\ndef f(x, w):\n    return x @ w\n" + GOOD.replace("f(", "g("))
    assert "[4, 8] X [9, 8]" in (with_status(found, "failed").reason or "")
    assert [region.function for region in found.regions if region.status is None] == ["g"]


def test_code_without_shapes(trace: Tracer) -> None:
    region = with_status(trace("def f(x, w):\n    return x @ w\n"), "needs-shapes")
    assert (region.text, region.function_args) == ("def f", ("x", "w"))
    assert "# mugraph: x=f16[...], w=f16[...]" in (region.reason or "")


def test_helpers_called_with_shapes_need_none(trace: Tracer) -> None:
    found = trace("def helper(x, w):\n    return x @ w\n" + GOOD.replace("x @ w", "helper(x, w)"))
    assert [(region.function, region.status) for region in found.regions] == [("f", None)]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("x=f32[4, 8", "cannot read"),
        ("x=q7[4, 8]", "names no dtype"),
        ("x=f32[4, n]", "no size is given for “n”"),
        ("f32[4, 8]", "needs names"),
        ("z=f32[4, 8]", "has no argument “z”; it takes w, x"),
    ],
)
def test_a_comment_that_is_no_description(trace: Tracer, comment: str, said: str) -> None:
    found = trace(f"# mugraph: {comment}\ndef f(x, w):\n    return x @ w\n")
    assert said in (with_status(found, "needs-shapes").reason or "")


def test_constructor_arguments_that_are_missing(trace: Tracer) -> None:
    source = """
        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.linear = nn.Linear(size, size)

            def forward(self, x):
                return self.linear(x)
        """
    assert "init(...)" in (with_status(trace(source), "needs-shapes").reason or "")
    told = trace(source.replace("x=f32[4, 8]", "x=f32[4, 8], init(size=8)"))
    assert [region.status for region in told.regions] == [None]


def test_an_unknown_name(trace: Tracer) -> None:
    assert "has no function or class named g" in error_of(trace(GOOD, qualname="g"))


def test_one_name_of_several(trace: Tracer) -> None:
    found = trace(GOOD + GOOD.replace("f(", "g("), qualname="g")
    assert [region.function for region in found.regions] == ["g"]


def test_a_method_of_a_class_that_is_called_by_another(trace: Tracer) -> None:
    source = """
        class Inner(nn.Module):
            def forward(self, x):
                y = x @ x.T
                print(y)
                return y

        # mugraph: x=f32[4, 8]
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, x):
                return self.inner(x) @ x
        """
    assert [region.function for region in trace(source, qualname="Inner").regions] == ["Inner.forward"]


def test_two_classes_of_one_name(trace: Tracer) -> None:
    one = """
        # mugraph: x=f32[4, 8]
        class Twin(nn.Module):
            def forward(self, x):
                return x @ x.T
        """
    found = trace(one + one.replace("x @ x.T", "x.T @ x"))
    assert [region.text for region in found.regions] == ["x.T @ x"]
    assert found.errors == ()


@pytest.mark.usefixtures("whole_process")
def test_numbers_that_decide(trace: Tracer) -> None:
    """What fake tensors cannot decide is run again on real ones."""
    found = trace("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            if (y.sum() > 0).item():
                y = y @ w
            return y @ w
        """)
    assert found.errors == ()
    assert "y = x @ w" in {region.text for region in found.regions}


def test_twenty_thousand_lines(trace: Tracer) -> None:
    many = "\n".join(f"def helper_{i}(x):\n    y = x + {i}\n    return y * 2\n" for i in range(5000))
    found = trace(many + GOOD)
    assert [region.text for region in found.regions] == ["x @ w"]
    assert found.regions[0].range.start.line > 20_000


def test_carriage_returns_tabs_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "windows.py"
    text = "import torch\r\n# mugraph: x=f32[4, 8], w=f32[8, 8]\r\ndef f(x, w):\r\n\ty = x @ w\r\n\treturn y @ w\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    region = trace_file(path).regions[0]
    assert region.text == "y = x @ w\r\n\treturn y @ w"
    assert (region.range.start.line, region.range.start.character) == (3, 1)
    assert (region.range.end.line, region.range.end.character) == (4, 13)


def test_columns_are_utf_16(trace: Tracer) -> None:
    found = trace("# mugraph: é=f32[4, 8], w=f32[8, 8]\ndef f(é, w):\n    '𝔞𝔟'; return (é @ w) + é\n")
    region = found.regions[0]
    assert region.text == "(é @ w) + é"
    line = "    '𝔞𝔟'; return (é @ w) + é"
    start = line.index(region.text)
    units = len(line[:start].encode("utf-16-le")) // 2
    assert region.range.start.character == units
    assert units == start + 2  # each letter before it takes two units


def test_an_unsaved_text_is_traced_instead_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "saved.py"
    path.write_text("raise ValueError('old')\n")
    found = trace_file(path, source="import torch\n" + GOOD)
    assert [region.text for region in found.regions] == ["x @ w"]


@pytest.mark.usefixtures("whole_process")
def test_relative_imports_of_a_package(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def product(x, w):\n    return x @ w\n")
    (package / "whole.py").write_text(
        "from .parts import product\n" + GOOD.replace("x @ w", "product(x, w).softmax(-1)")
    )
    found = trace_file(package / "whole.py")
    assert [region.text for region in found.regions] == ["product(x, w).softmax(-1)"]
    assert [call.target for call in found.regions[0].calls] == ["Tensor.matmul", "Tensor.softmax"]


def test_a_file_of_the_users_with_an_effect_is_seen_through_an_import(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("def product(x, w):\n    print('effect')\n    return x @ w\n")
    (tmp_path / "main.py").write_text("from noisy import product\n" + GOOD.replace("x @ w", "product(x, w) @ w"))
    assert [region.text for region in trace_file(tmp_path / "main.py").regions] == []


def test_numbers_that_are_taken_to_numpy(trace: Tracer) -> None:
    """The run is made again with real tensors, and finds what is before and after."""
    found = trace("""
        # mugraph: x=f32[6, 16], w=f32[16, 16]
        def f(x, w):
            h = torch.softmax(x @ w, dim=-1)
            most = float(h.detach().cpu().numpy().max())
            print(most)
            return torch.softmax(h @ w, dim=-1)
        """)
    assert [(region.status, region.reason) for region in found.regions] == [(None, None), (None, None)]
    assert not any("most" in guard for region in found.regions for guard in region.guards)
