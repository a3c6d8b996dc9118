"""Pictures as they are kept: the nodes of an object once, however many calls show it."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from mugraph.trace.picture import Around, Node, Picture, Value

Objects = dict[str, msgspec.Raw]
"""The nodes of objects, by their digest. They are read when a picture is asked for."""


class StoredPicture(msgspec.Struct, frozen=True):
    """object: of the owner, in Objects; details: the rest. unkept: what is not in it, in words."""

    object: str
    details: msgspec.Raw
    unkept: tuple[str, ...] = ()


class _Details(msgspec.Struct):
    owner: Value
    arguments: dict[str, Value]
    globals: dict[str, Value]
    nodes: list[Node]
    module: str
    around: Around


def apart(picture: Picture, objects: Objects) -> StoredPicture:
    """Its object goes to `objects`."""
    nodes = msgspec.json.encode(picture.nodes[: picture.own])
    name = sha256(nodes).hexdigest()[:32]
    objects[name] = msgspec.Raw(nodes)
    rest = picture.nodes[picture.own :]
    details = _Details(picture.owner, picture.arguments, picture.globals, rest, picture.module, picture.around)
    return StoredPicture(name, msgspec.Raw(msgspec.json.encode(details)), picture.unkept)


def whole(stored: StoredPicture, objects: Objects) -> Picture:
    """Raises KeyError, or msgspec.MsgspecError, where the recording is damaged."""
    own = msgspec.json.decode(objects[stored.object], type=list[Node])
    rest = msgspec.json.decode(stored.details, type=_Details)
    nodes = [*own, *rest.nodes]
    return Picture(rest.owner, rest.arguments, rest.globals, len(own), nodes, rest.module, rest.around, stored.unkept)
