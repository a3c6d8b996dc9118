"""What a region's test calls in place of itself: it asks the test, counts the answer, and finds out why it was no."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .counts import Counts
from .guards import Guards
from .instrument import Question
from .only_sizes import other_sizes
from .sentences import sentence

UNKNOWN = "its test said no, and every check of it holds when it is made again"


class Watch:
    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._regions: list[tuple[str, str, Guards, Question]] = []
        self._guards: dict[str, Guards] = {}

    def register(self, path: str, name: str, tree: ast.Module, question: Question) -> int:
        guards = self._guards.setdefault(path, Guards(path, tree))
        self._regions.append((path, name, guards, question))
        self._counts.add((path, name, None, None), 0)  # known, though it may never be called
        return len(self._regions) - 1

    def asked(self, slot: int, test: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        said = test(*given)
        path, name, guards, question = self._regions[slot]
        if said:
            self._counts.add((path, name, None, None))
            return said
        why = why_not(guards, f"{name}_fits", test, given, question.words)
        try:
            sizes = other_sizes(guards, f"{name}_fits", test.__globals__, given, question.words, question.sizes)
        except Exception as error:  # the program goes on, whatever becomes of us
            why, sizes = f"{why} (whether only for sizes cannot be told: {type(error).__name__})", None
        self._counts.add((path, name, why, sizes))
        return said


def why_not(
    guards: Guards, name: str, test: Callable[..., Any], given: tuple[Any, ...], words: Sequence[str] = ()
) -> str:
    """Why a region's test has said no, in one sentence. words: what the user's file calls what is given"""
    try:
        refusal = guards.refusal(name, test.__globals__, given, words)
        return sentence(refusal) if refusal is not None else UNKNOWN
    except Exception as error:  # the program goes on, whatever becomes of us
        return f"its test said no; why cannot be told ({type(error).__name__})"
