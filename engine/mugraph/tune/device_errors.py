"""What an exception of a measuring process says, and whether the GPU can be used after it."""

from __future__ import annotations

from mugraph.too_little_memory import in_words, is_of_memory

# What CUDA says when the context is gone, or may be: nothing measured in this process afterwards can be believed.
_FATAL = ("cuda error", "illegal memory access", "misaligned address", "launch failure", "device-side assert")


def one_line(error: BaseException) -> str:
    """An exception as one sentence: its type and the first line of what it says; of the device's memory, how much was
    asked for and how much was free."""
    if is_of_memory(error):
        return in_words(error)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__


def is_fatal(error: BaseException) -> bool:
    """Whether the CUDA context may be broken. Running out of memory or of shared memory leaves it whole."""
    if type(error).__name__ in ("OutOfMemoryError", "OutOfResources", "CompilationError"):
        return False
    text = f"{type(error).__name__} {error}".lower()
    return type(error).__name__ == "AcceleratorError" or any(mark in text for mark in _FATAL)
