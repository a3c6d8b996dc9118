"""What Python itself knows of an object."""

from __future__ import annotations

from types import MethodType


def attribute_of(value: object, name: str) -> object:
    """One of its attributes, without a call of the `__getattr__` or `__getattribute__` of its class, which may raise
    anything; None where it has none."""
    try:
        match value:
            case type():
                return type.__getattribute__(value, name)
            case MethodType():
                return MethodType.__getattribute__(value, name)
            case _:
                return object.__getattribute__(value, name)
    except AttributeError:
        return None
