"""NumPy multiplies with one thread. Of the products of small matrices that verification computes and that Triton's
interpreter does, threads would only wait for each other: one of 128 x 64 and 64 x 128 takes forty times the processor's
time. The library reads the environment when NumPy is imported, so it is said to a process before it starts."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

_VARIABLE = "OPENBLAS_NUM_THREADS"


def with_one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Of a process to be started; what the user has set stays."""
    return {_VARIABLE: "1", **environment}


def set_one_thread(environment: MutableMapping[str, str]) -> None:
    """Of this process, before NumPy is imported; what the user has set stays."""
    environment.setdefault(_VARIABLE, "1")
