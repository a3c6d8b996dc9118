"""Changes of parts that some objects of a class have and others lack."""

from __future__ import annotations

from torch import nn

from tests.changes.case import RESIDUAL, Case, kernel_runs, original_runs


@kernel_runs(RESIDUAL)
def a_part_that_is_none_is_registered_as_such(case: Case) -> None:
    del case.model.first.shortcut
    case.model.first.register_module("shortcut", None)


@original_runs(RESIDUAL, lasting=True)
def a_part_where_there_was_none(case: Case) -> None:
    case.model.first.shortcut = nn.Tanh()


@original_runs(RESIDUAL, lasting=True)
def a_function_where_there_was_none(case: Case) -> None:
    case.model.first.shortcut = lambda x: x * 2


@original_runs(RESIDUAL, lasting=True)
def none_where_there_was_a_part(case: Case) -> None:
    case.model.second.shortcut = None


@original_runs(RESIDUAL, lasting=True)
def another_function(case: Case) -> None:
    case.model.first.act = lambda x: x * 2


@original_runs(RESIDUAL, lasting=True)
def a_function_before_a_part(case: Case) -> None:
    case.model.second.__dict__["act"] = lambda x: x * 2


@original_runs(RESIDUAL, lasting=True)
def a_shortcut_before_a_part(case: Case) -> None:
    case.model.second.__dict__["shortcut"] = None
