"""Triton's interpreter puts its own functions in place of the language's at each launch, and again at each call of a
function within a kernel (tl.zeros and tl.sigmoid are such), which looks at every name of the language. Here once a
launch: what is in place stays until the launch is over, and what is to be looked at is remembered.

It also computes for each sum and product of integers whether it overflows, in five operations, for an assertion that
only debug mode has. Those were more than half of what a kernel takes that finds its places by products."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any


def patch_once_a_launch(interpreter: Any) -> None:
    """interpreter: the module triton.runtime.interpreter, before anything was launched"""
    if getattr(interpreter, "_patched_once_a_launch", False):
        return
    interpreter._patched_once_a_launch = True
    _remember_names(interpreter)
    in_place: list[set[frozenset[int]]] = []  # for each launch that runs: the languages for which it has been done
    patch, launch = interpreter._patch_lang, interpreter.GridExecutor.__call__

    def patched(fn: Any) -> Any:
        if in_place:
            in_place[-1].add(_languages(interpreter, fn))
        return patch(fn)

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        in_place.append(set())
        try:
            return launch(self, *args, **kwargs)
        finally:
            in_place.pop()

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not in_place or _languages(interpreter, self.fn) not in in_place[-1]:
            patched(self.fn)
        function = self.rewrite()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    interpreter._patch_lang = patched
    interpreter.GridExecutor.__call__ = launched
    interpreter.InterpretedFunction.__call__ = called


def without_discarded_assertions(interpreter: Any) -> None:
    """What is computed for an assertion that is not made is left out."""
    options = interpreter.interpreter_builder.options
    if not options.debug and getattr(options, "sanitize_overflow", False):
        interpreter.interpreter_builder.options = replace(options, sanitize_overflow=False)


def _languages(interpreter: Any, fn: Any) -> frozenset[int]:
    """The modules of the language that a function sees, by their ids: what is put in place for it follows from them."""
    tl = interpreter.tl
    seen = getattr(fn, "_mugraph_languages", None)
    if seen is None:
        values = list(fn.__globals__.values())
        seen = frozenset(id(module) for module in (tl, tl.core) if any(value is module for value in values))
        fn._mugraph_languages = seen
    return seen


def _remember_names(interpreter: Any) -> None:
    """The functions of a package that are the language's: which names they have is looked up once."""
    names: dict[int, tuple[str, ...]] = {}
    is_builtin = interpreter.tl.core.is_builtin

    def patch_builtin(pkg: Any, builder: Any, *scope: Any) -> None:
        known = names.get(id(pkg))
        if known is None:
            known = names[id(pkg)] = tuple(name for name, member in inspect.getmembers(pkg) if is_builtin(member))
        for name in known:
            member = getattr(pkg, name)
            if is_builtin(member):
                interpreter._patch_attr(pkg, name, member, builder, *scope)

    interpreter._patch_builtin = patch_builtin
