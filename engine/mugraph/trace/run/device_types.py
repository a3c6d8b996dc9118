"""The type of a tensor's device, as `x.device.type` says it. A program is traced on the CPU, and runs on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

_PLACES = ("cpu", "cuda")


class DeviceType(str):
    """It tells when the program does something with it that has one result on the CPU and another on a GPU.

    asked: is called then
    """

    asked: Callable[[], None]

    @staticmethod
    def of(text: str, asked: Callable[[], None]) -> DeviceType:
        made = DeviceType(text)
        made.asked = asked
        return made

    @property
    def plain(self) -> str:
        return str.__str__(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType) or other in _PLACES:
            self.asked()
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        here = self == other
        return here if here is NotImplemented else not here

    def __hash__(self) -> int:
        self.asked()
        return str.__hash__(self)

    def __reduce_ex__(self, _: object) -> tuple[type[str], tuple[str]]:
        self.asked()
        return str, (self.plain,)


def _telling(name: str) -> Callable[..., object]:
    original = cast("Callable[..., object]", getattr(str, name))

    def tell(self: DeviceType, *others: object) -> object:
        self.asked()
        return original(self, *others)

    return tell


for _name in (
    "__add__", "__contains__", "__format__", "__ge__", "__getitem__", "__gt__", "__iter__", "__le__", "__lt__",
    "__mod__", "__mul__", "__repr__", "__rmod__", "__rmul__", "__str__",
):  # fmt: skip
    setattr(DeviceType, _name, _telling(_name))


def device_types_in(value: object) -> Iterator[DeviceType]:
    """The value itself, or what lists, tuples and dicts hold."""
    if isinstance(value, DeviceType):
        yield value
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from device_types_in(item)
    elif isinstance(value, dict):
        for item in cast("Mapping[object, object]", value).values():
            yield from device_types_in(item)
