"""A recorded call, as it was: what `mugraph record` writes, and tracing starts from. Data that runs nothing when read.

Values that are objects are nodes, referred to by their number, so that what was one object stays one, and cycles are
kept. A tensor is its shape, strides, type and device, and whose storage it shares. What could not be kept is there as
`Unkept`, which says what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mugraph.ir.ops import Tf32


class Reference(msgspec.Struct, frozen=True, tag="ref", tag_field="is"):
    at: int


class Unkept(msgspec.Struct, frozen=True, tag="unkept", tag_field="is"):
    what: str


class Number(msgspec.Struct, frozen=True, tag="float", tag_field="is"):
    """Infinite, or not a number."""

    text: str


class BigInteger(msgspec.Struct, frozen=True, tag="int", tag_field="is"):
    text: str


class Complex(msgspec.Struct, frozen=True, tag="complex", tag_field="is"):
    parts: tuple[Value, Value]


class Named(msgspec.Struct, frozen=True, tag="named", tag_field="is"):
    """what: "dtype", "layout", "memory_format", "device" or "ellipsis"."""

    what: str
    text: str


class Place(msgspec.Struct, frozen=True, tag="place", tag_field="is"):
    """A class, function or module. name: qualified; "" for the module itself. file: of a module of the user's."""

    module: str
    name: str
    file: str | None = None


class Member(msgspec.Struct, frozen=True, tag="member", tag_field="is"):
    """Of an enumeration."""

    of: Place
    name: str


class Tensor(msgspec.Struct, frozen=True, tag="tensor", tag_field="is"):
    """offset: in elements. storage: tensors of one number share it; bytes: its length. triangle: of a mask, the
    diagonal, the number below it and the one above (None: minus infinity)."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    device: str
    storage: int
    bytes: int
    needs_grad: bool = False
    parameter: bool = False
    triangle: tuple[int, float | None, float | None] | None = None
    state: dict[str, Value] = {}


class Array(msgspec.Struct, frozen=True, tag="array", tag_field="is"):
    """Of NumPy's. alone: a number of its own, no array without dimensions."""

    dtype: str
    shape: tuple[int, ...]
    items: list[Value]
    alone: bool = False


class Object(msgspec.Struct, frozen=True, tag="object", tag_field="is"):
    of: Place
    state: dict[str, Value]
    slots: dict[str, Value] = {}


class Items(msgspec.Struct, frozen=True, tag="items", tag_field="is"):
    """kind: "list", "tuple", "set", "frozenset", "deque" or "size". of: of a class that inherits from it."""

    kind: str
    items: list[Value]
    of: Place | None = None
    state: dict[str, Value] = {}


class Pairs(msgspec.Struct, frozen=True, tag="pairs", tag_field="is"):
    """kind: "dict", "OrderedDict" or "defaultdict"."""

    kind: str
    items: list[tuple[Value, Value]]
    factory: Value = None
    of: Place | None = None
    state: dict[str, Value] = {}


class Slice(msgspec.Struct, frozen=True, tag="slice", tag_field="is"):
    parts: tuple[Value, Value, Value]


class Span(msgspec.Struct, frozen=True, tag="range", tag_field="is"):
    parts: tuple[Value, Value, Value]


class PathText(msgspec.Struct, frozen=True, tag="path", tag_field="is"):
    text: str


class Partial(msgspec.Struct, frozen=True, tag="partial", tag_field="is"):
    function: Value
    args: list[Value]
    kwargs: dict[str, Value]


class Method(msgspec.Struct, frozen=True, tag="method", tag_field="is"):
    function: Value
    owner: Value


class Weak(msgspec.Struct, frozen=True, tag="weak", tag_field="is"):
    """A weak reference, as recurrent layers have to their weights. to: None where that was gone."""

    to: Value


class Function(msgspec.Struct, frozen=True, tag="function", tag_field="is"):
    """One without a place: found in its module's code by name and line. closure: what its free variables hold."""

    module: str
    file: str | None
    name: str
    line: int
    closure: list[Value]
    defaults: list[Value]
    named_defaults: dict[str, Value]


Value = (
    None | bool | int | float | str | Reference | Unkept | Number | BigInteger | Complex | Named | Place | Member
)  # fmt: skip
Node = Tensor | Array | Object | Items | Pairs | Slice | Span | PathText | Partial | Method | Weak | Function | Unkept


class Group(msgspec.Struct, frozen=True):
    """A process group that a module kept under a name."""

    module: str
    name: str
    ranks: tuple[int, ...]


class Distributed(msgspec.Struct, frozen=True):
    rank: int
    processes: int
    groups: tuple[Group, ...] = ()


class Around(msgspec.Struct, frozen=True):
    """autocast: type by device, where it was on. distributed: None where no process group was set up. path: folders of
    the user's that modules were imported from. tf32: the settings that let PyTorch take it; None where that was not
    recorded."""

    default_dtype: str = "float32"
    grad: bool = False
    inference: bool = False
    autocast: dict[str, str] = {}
    distributed: Distributed | None = None
    path: tuple[str, ...] = ()
    tf32: tuple[Tf32, ...] | None = None


class Picture(msgspec.Struct, frozen=True):
    """owner: the object whose method was called. arguments: all of them, by parameter; `*rest` and `**more` keep their
    stars. globals: data of the function's module. own: how many of the nodes are the owner's. module: its name then.
    unkept: what is not in it, in words. same: numbers among the arguments that were the same in each of several calls
    of the run. of_session: the traced file was written from what was typed in a session, and
    takes the place of `__main__`."""

    owner: Value
    arguments: dict[str, Value]
    globals: dict[str, Value]
    own: int
    nodes: list[Node]
    module: str = ""
    around: Around = Around()
    unkept: tuple[str, ...] = ()
    of_session: bool = False
    same: tuple[str, ...] = ()

    @property
    def dtypes(self) -> frozenset[str]:
        """Of the tensors among its nodes."""
        return frozenset(node.dtype for node in self.nodes if isinstance(node, Tensor))


def imported_as(pictures: Mapping[str, Picture]) -> str | None:
    """The name under which the run has imported the file that the pictures are of."""
    return next((one.module for one in pictures.values() if one.module and not one.of_session), None)


def picture_from(data: bytes | Mapping[str, Any]) -> Picture:
    """Raises msgspec.MsgspecError where it is none."""
    if isinstance(data, bytes):
        return msgspec.json.decode(data, type=Picture)
    return msgspec.convert(data, Picture)
