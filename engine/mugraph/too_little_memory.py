"""Whether an error says that a device, or the computer, had too little memory, and what a person is told then."""

from __future__ import annotations

import re


def is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def is_said(text: str) -> bool:
    """Whether a text has such an error in it, in PyTorch's words or in those of `in_words`."""
    return re.search(r"out of memory|there was too little memory", text, re.IGNORECASE) is not None


def in_words(error: BaseException) -> str:
    """How much was asked for and how much was free, where the error says that."""
    asked = re.search(r"Tried to allocate ([\d.]+ \w+)", str(error))
    free = re.search(r"of which ([\d.]+ \w+) is free", str(error))
    if asked is None:
        return f"there was too little memory{f': {error}' if isinstance(error, MemoryError) and str(error) else ''}"
    return f"there was too little memory: {asked[1]} more were asked for{f', {free[1]} were free' if free else ''}"
