"""Changes of what is imported, how often and by what name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from tests.changes.case import GATED, Case, either_runs, original_runs
from tests.changes.classes import parts


@original_runs(GATED, lasting=True)
def imported_again(case: Case) -> None:
    """The file twice, one after the other; a helper is replaced in the second."""
    before = case.module
    del sys.modules["gated"]
    case.module = importlib.import_module("gated")
    assert case.module is not before
    case.module.project = lambda layer, x: -layer(x)
    case.model = case.made()


@original_runs(GATED, lasting=True)
def imported_by_two_names(case: Case) -> None:
    """As a script's file that is imported as well; a helper is replaced in the second."""
    spec = importlib.util.spec_from_file_location("copied", case.module.__file__)
    case.module = importlib.util.module_from_spec(spec)
    sys.modules["copied"] = case.module
    spec.loader.exec_module(case.module)
    case.module.project = lambda layer, x: -layer(x)
    case.model = case.made()


@original_runs(GATED, lasting=True)
def imported_by_two_names_and_the_first_changed(case: Case) -> Any:
    """The model is the first's, and so is the helper."""
    spec = importlib.util.spec_from_file_location("copied", case.module.__file__)
    sys.modules["copied"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["copied"])
    case.run()
    case.launches = 0
    case.module.project = lambda layer, x: -layer(x)


@original_runs(GATED, lasting=True)
def the_parts_imported_again(case: Case) -> None:
    """What the helper reads is of another module object now."""
    del sys.modules["gated_parts"]
    again = importlib.import_module("gated_parts")
    again.STRENGTH = 4.0
    case.module.gate = again.gate


@either_runs(GATED, lasting=True)
def reloaded(case: Case) -> None:
    """The model's classes are not those of the module any more."""
    importlib.reload(parts())
    importlib.reload(case.module)


@either_runs(GATED, lasting=True)
def reloaded_and_made_again(case: Case) -> None:
    importlib.reload(parts())
    importlib.reload(case.module)
    case.model = case.made()


@original_runs(GATED, lasting=True)
def reloaded_with_other_code(case: Case) -> None:
    """As a notebook's autoreload does: the text is another one now, and the functions are new ones."""
    module = parts()
    with open(module.__file__) as file:
        text = file.read()
    exec(compile(text.replace("F.silu", "F.relu"), module.__file__, "exec"), module.__dict__)
    case.module.gate = module.gate
