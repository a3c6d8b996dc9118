"""NumPy multiplies with one thread. Of the products of small matrices that verification computes and that Triton's
interpreter does, threads would only wait for each other: one of 128 x 64 and 64 x 128 takes forty times the processor's
time. The library reads the environment when NumPy is imported, so it is said to a process before it starts.

PyTorch has as many threads as there are processors, which is right for a process that is alone. Those of several side
by side wait for each other, and what they do while they wait takes the processors from the others: the checks of a
model's units took three times the processor's time."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

_VARIABLE = "OPENBLAS_NUM_THREADS"
_OF_PYTORCH = "OMP_NUM_THREADS"


def with_one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Of a process to be started; what the user has set stays."""
    return {_VARIABLE: "1", **environment}


def beside_others(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Of one of several processes that work side by side, and of those that it starts; what the user has set stays."""
    return {_OF_PYTORCH: str(threads), **environment}


def set_one_thread(environment: MutableMapping[str, str]) -> None:
    """Of this process, before NumPy is imported; what the user has set stays."""
    environment.setdefault(_VARIABLE, "1")
