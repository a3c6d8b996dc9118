"""Settings: every wrong value is named in one sentence, and its default counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mugraph.protocol.setting_kinds import Count, Seconds
from mugraph.protocol.settings import ExtensionSettings, Settings, declared
from mugraph_server.configuration import Configuration, read_options
from mugraph_server.engine.command import choose, explain
from mugraph_server.settings import KEYS, read


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"search": {"budget": 5}}, Settings(budget_s=5.0)),
        ({"search.budget": 5}, Settings(budget_s=5.0)),
        ({"search": {"kernels": 1, "operators": 9}}, Settings(max_kernels=1, max_ops=9)),
        ({"engine": {"command": "ssh box python -m mugraph.worker"}}, ["ssh", "box", "python", "-m", "mugraph.worker"]),
        ({"engine": {"command": ["a b", "c"]}}, ["a b", "c"]),
        ({"target": "H200"}, Settings(target="h200")),
        ({"target": "sm_120"}, Settings(target="sm_120")),
        ({"views": {"codeLens": False}}, Settings(code_lens=False)),
        ({"enable": None}, Settings()),
        ({"server": {"path": []}, "trace": {"server": "off"}}, Settings()),
        (None, Settings()),
        ({}, Settings()),
    ],
)
def test_right_values(given: object, expected: Settings | list[str]) -> None:
    settings, wrong = read(given)
    assert wrong == []
    if isinstance(expected, list):
        assert settings.engine_command == tuple(expected)
    else:
        assert settings == expected


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"search": {"budget": "5"}},
            "mugraph.search.budget: must be a number of seconds from 0.1 to 86400; it is '5'",
        ),
        ({"search": {"budget": True}}, "must be a number of seconds"),
        ({"search": {"budget": float("nan")}}, "must be a number of seconds"),
        ({"search": {"kernels": 0}}, "mugraph.search.kernels: must be a whole number from 1 to 100"),
        ({"search": {"operators": 2.5}}, "mugraph.search.operators: must be a whole number from 1 to 100"),
        ({"search": {"when": "always"}}, "mugraph.search.when: must be save, open or demand; it is 'always'"),
        ({"engine": {"command": "'a"}}, "has a quotation mark without its partner"),
        ({"engine": {"command": [1]}}, "must be a command line or a list of strings"),
        ({"target": "tpu"}, "must be auto, cpu, a100, h100, h200 or an architecture such as sm_90"),
        ({"enable": "yes"}, "must be true or false; it is 'yes', so True is used"),
        ({"log": {"level": "x" * 500}}, "must be error, warning, info or debug"),
        ({"serach": 1}, "mugraph.serach: there is no such setting"),
        ([], "the settings must be an object with keys such as 'enable', not a list"),
        (7, "not a number"),
    ],
)
def test_wrong_values(given: object, sentence: str) -> None:
    settings, wrong = read(given)
    assert settings == Settings()
    assert len(wrong) == 1
    assert sentence in wrong[0]
    assert len(wrong[0]) < 250


def test_a_wrong_value_does_not_spoil_the_others() -> None:
    settings, wrong = read({"enable": 3, "search": {"budget": 2, "when": "save"}})
    assert (settings.enable, settings.budget_s, settings.search_on) == (True, 2.0, "save")
    assert len(wrong) == 1


def test_the_extension_says_of_the_settings_what_their_declarations_do() -> None:
    script = Path(__file__).parents[2] / "editor-extension/settings.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_setting_is_declared_with_all_that_is_shown_of_it() -> None:
    for one in (*declared(Settings), *declared(ExtensionSettings)):
        setting, default = one.setting, one.default
        if setting.key and setting.scope is not None:
            assert setting.says.endswith("."), one.name
            assert setting.values.read([] if default == () else default) == default
        assert bool(setting.called) == isinstance(setting.values, Count | Seconds), one.name


def test_every_key_is_taken() -> None:
    assert read(dict.fromkeys(KEYS)) == (Settings(), [])


def test_settings_differ_between_roots() -> None:
    configuration = Configuration()
    options, _ = read_options({"trusted": False, "theme": "dark"})
    assert configuration.begin(options) == []
    one, two = Path("/one"), Path("/two")
    wrong = configuration.take({"search": {"budget": 1}}, {one: {"interpreter": "/py"}, two: {"enable": 3}})
    assert len(wrong) == 1
    assert configuration.of(one).interpreter == "/py"
    assert configuration.of(two) == Settings(trusted=False, theme="dark")
    assert configuration.of(Path("/three")).budget_s == 1
    configuration.set(trusted=True)
    assert configuration.of(one).trusted
    assert configuration.of(one).theme == "dark"


def test_the_environment_is_the_setting_else_the_editors_else_the_servers() -> None:
    command = choose(Settings(engine_command=("ssh", "box"), interpreter="/usr/bin/python3"))
    assert command.arguments == ("ssh", "box")
    command = choose(Settings(interpreter="/usr/bin/python3"))
    assert command.arguments == ("/usr/bin/python3", "-m", "mugraph.worker")
    assert command.missing() is None
    assert "does not exist" in str(choose(Settings(interpreter="/nowhere/python")).missing())
    assert choose(Settings()).chosen_by == "the server's own"


def test_why_an_engine_did_not_start() -> None:
    command = choose(Settings(interpreter="/py"))
    assert "/py has no mugraph; install it there" in str(explain(["/py: No module named mugraph.worker"], command))
    assert "lacks the Python package torch" in str(explain(["ModuleNotFoundError: No module named 'torch'"], command))
    said = "mugraph: msgspec is not installed in /py, and mugraph needs it: pip install msgspec"
    assert explain([said], command) == said.removeprefix("mugraph: ")
    assert explain(["Killed"], command) is None
