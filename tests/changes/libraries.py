"""Changes of what a program borrows: a library's classes, functions, tables and decorators."""

from __future__ import annotations

import functools
import sys
from types import FunctionType, ModuleType
from typing import Any, cast

import torch

from tests.changes.case import BORROWED, DECORATED, Case, either_runs, kernel_runs, original_runs


def lending() -> ModuleType:
    return sys.modules["lending"]


def halved(module: Any, gate: torch.Tensor, up: torch.Tensor, **_: object) -> tuple[torch.Tensor, None]:
    return gate * up * 0.25, None


@original_runs(BORROWED, lasting=True)
def its_activation_is_another(case: Case) -> None:
    lending().Swish.forward = lambda self, x: torch.relu(x)


@original_runs(BORROWED, lasting=True)
def its_function_is_another(case: Case) -> None:
    """The same object, with other code."""
    lending().plain_mix.__code__ = halved.__code__


@original_runs(BORROWED, lasting=True)
def its_table_has_an_entry_of_its_own(case: Case) -> None:
    lending().MIXERS["plain"] = halved


@original_runs(BORROWED, lasting=True)
def its_class_has_another_entry(case: Case) -> None:
    lending().Mixers.shared["plain"] = halved


@original_runs(BORROWED, lasting=True)
def its_table_answers_otherwise(case: Case) -> None:
    lending().Table.__getitem__ = lambda self, key: halved


@original_runs(BORROWED)
def asks_for_another(case: Case) -> None:
    case.model.mixer = "none"
    lending().MIXERS.own.clear()


@original_runs(BORROWED)
def hands_over_another_number(case: Case) -> None:
    case.model.strength = 2.0


def _halving(function: Any) -> FunctionType:
    """Takes what the library's decorator takes, and halves the result."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        made, weights = function(*args, x=kwargs.pop("hidden"), **kwargs)
        return made * 0.5, weights

    return cast("FunctionType", wrapper)


@original_runs(BORROWED, lasting=True)
def its_decorator_does_more(case: Case) -> None:
    """Its name is the same, and what it is around."""
    kind = type(case.model)
    before, made = kind.mixed, _halving(kind.mixed.__wrapped__)
    code = made.__code__.replace(co_qualname=before.__code__.co_qualname)
    other = FunctionType(code, vars(lending()), closure=made.__closure__)
    kind.mixed = functools.update_wrapper(other, before.__wrapped__)


@either_runs(DECORATED, lasting=True)
def a_decorator_of_its_own_does_more(case: Case) -> None:
    """The wrapper stays the object that it is."""
    wrapper = case.module.squashed

    def scaled(by: float, function: Any) -> Any:
        def wrapper(x: torch.Tensor) -> torch.Tensor:
            return function(x) * by * 0.5

        return wrapper

    other = scaled(2.0, wrapper.__wrapped__).__code__
    wrapper.__code__ = other.replace(co_qualname=wrapper.__code__.co_qualname)


@kernel_runs(BORROWED)
def its_table_is_asked(case: Case) -> None:
    assert lending().MIXERS["plain"] is lending().plain_mix


@kernel_runs(BORROWED, lasting=True)
def what_it_does_not_use_is_another(case: Case) -> None:
    lending().nothing = 1
