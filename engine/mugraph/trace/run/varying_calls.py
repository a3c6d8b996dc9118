"""Calls of functions with numbers that vary: which of them may be given such a number as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import cast

import torch

from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.callables import HOOKS, Judge
from mugraph.trace.run.varying import FUNCTIONS, Varying, computed, varying_in


def of_numbers(
    judge: Judge, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """What the call gives. One of code that is not watched is taken to decide by the number: what C code reads of it is
    not seen."""
    if _is_hashable(function) and function in FUNCTIONS and not kwargs:
        return computed(FUNCTIONS[function], function, args)
    if function is float and len(args) == 1 and isinstance(args[0], Varying) and isinstance(args[0], float):
        return args[0]
    if function is not isinstance and not _takes_them(judge, function):
        for number in varying_in((args, kwargs)):
            number.decide()
    return function(*args, **kwargs)


def _takes_them(judge: Judge, function: object) -> bool:
    """Whether what the function does with numbers is seen: it is watched, or gives them to PyTorch's calls."""
    if is_watched(judge, function):
        return True
    while isinstance(function, functools.partial):
        function = cast("functools.partial[object]", function).func
    owner = attribute_of(function, "__self__")
    root = str(attribute_of(function, "__module__") or "").partition(".")[0]
    return isinstance(owner, torch.Tensor) or root == "torch"


def is_watched(judge: Judge, function: object) -> bool:
    """Whether what a call of it does is recorded: it is watched code, or calls that first."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[object]", function).func
    if isinstance(function, torch.nn.Module):
        function = type(function).forward
    elif isinstance(function, type):
        function = function.__init__
    code = _code(function)
    return code is not None and HOOKS in code.co_names and judge.watches(code)


def _code(function: object) -> CodeType | None:
    if isinstance(function, MethodType):
        function = function.__func__
    while isinstance(function, FunctionType) and HOOKS not in function.__code__.co_names:
        inner = function.__dict__.get("__wrapped__")
        if inner is None:
            break
        function = inner
    return function.__code__ if isinstance(function, FunctionType) else None


def _is_hashable(function: object) -> bool:
    return type(function).__hash__ is not None and not isinstance(function, torch.nn.Module)
