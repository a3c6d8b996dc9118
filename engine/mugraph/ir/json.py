"""The intermediate representation as JSON: versioned, and checked on the way in.

Every document is an object with "format" (the version) and "type" ("mugraph", "program", "block", "schedule" or
"candidate"). Fields are those of the dataclasses; a μGraph's kernels carry "kind": "graph" or "library"; a float that
JSON cannot hold is {"float": "inf" | "-inf" | "nan"}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar, cast

import msgspec

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.kinds import Kind, kind_named

FORMAT = 1

Json = dict[str, object]
T = TypeVar("T")


class FormatError(ValueError):
    """The document is not what it should be; the message says where and what was expected."""


def mugraph_to_json(mugraph: MuGraph) -> Json:
    document = _encode("mugraph", mugraph)
    document["kernels"] = [
        {"kind": "graph" if isinstance(kernel, GraphKernel) else "library", **_fields(kernel)}
        for kernel in mugraph.kernels
    ]
    if not mugraph.one_launch:  # as in documents of before there were such launches
        del document["one_launch"]
    if not mugraph.combined:
        del document["combined"]
    return document


def mugraph_from_json(document: object) -> MuGraph:
    """Raises FormatError."""
    body = _body("mugraph", document)
    kernels = body.get("kernels")
    if not isinstance(kernels, list):
        raise FormatError("a mugraph needs a list `kernels`")
    frame = _decode(body, _Frame, "mugraph")
    parsed = tuple(_kernel(kernel, index) for index, kernel in enumerate(cast("list[object]", kernels)))
    around = frame.name, frame.sizes, frame.tensors, frame.inputs, frame.outputs
    return MuGraph(*around, parsed, frame.one_launch, frame.combined)


def program_to_json(program: TensorProgram) -> Json:
    return _encode("program", program)


def program_from_json(document: object) -> TensorProgram:
    """Raises FormatError."""
    return _decode(_body("program", document), TensorProgram, "program")


def block_to_json(block: BlockGraph) -> Json:
    return _encode("block", block)


def block_from_json(document: object) -> BlockGraph:
    """Raises FormatError."""
    return _decode(_body("block", document), BlockGraph, "block")


def schedule_to_json(schedule: Schedule) -> Json:
    return _encode("schedule", schedule)


def schedule_from_json(document: object) -> Schedule:
    """Raises FormatError."""
    return _decode(_body("schedule", document), Schedule, "schedule")


def candidate_to_json(candidate: Candidate) -> Json:
    return _encode("candidate", candidate)


def candidate_from_json(document: object) -> Candidate:
    """Raises FormatError."""
    return _decode(_body("candidate", document), Candidate, "candidate")


@dataclass(frozen=True)
class _Frame:
    """A μGraph but for its kernels, whose two kinds msgspec does not tell apart."""

    name: str
    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    one_launch: tuple[tuple[str, ...], ...] = ()
    combined: tuple[tuple[str, str], ...] = ()


def _kernel(value: object, index: int) -> GraphKernel | LibraryKernel:
    where = f"kernels[{index}]"
    if not isinstance(value, dict):
        raise FormatError(f"{where} is no object")
    fields = dict(cast("Json", value))
    match fields.pop("kind", None):
        case "graph":
            return _decode(fields, GraphKernel, where)
        case "library":
            return _decode(fields, LibraryKernel, where)
        case kind:
            raise FormatError(f"{where}.kind is {kind!r}, not 'graph' or 'library'")


def _fields(value: object) -> Json:
    """The dataclass as JSON's own types; mappings keep their order."""
    return cast("Json", _each(msgspec.to_builtins(value, enc_hook=str), _pack))


def _encode(kind: str, value: object) -> Json:
    return {"format": FORMAT, "type": kind, **_fields(value)}


def _body(kind: str, document: object) -> Json:
    """The document without its head, checked."""
    if not isinstance(document, Mapping):
        raise FormatError(f"a {kind} is a JSON object, not {type(document).__name__}")
    body = dict(cast("Mapping[str, object]", document))
    version = body.pop("format", None)
    if version != FORMAT:
        raise FormatError(f"format {version!r} is not understood; this version reads format {FORMAT}")
    found = body.pop("type", None)
    if found != kind:
        raise FormatError(f"this is a {found!r}, not a {kind!r}")
    return body


def _decode(body: Json, cls: type[T], what: str) -> T:
    try:
        return msgspec.convert(_each(body, _unpack), cls, strict=True, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise FormatError(f"{what}: {error}") from None


def _decoded(cls: type, value: object) -> Kind:
    """Of a class that msgspec does not know: a kind is written as its name."""
    if cls is not Kind:
        raise TypeError(f"a {cls.__name__} is not read from JSON")
    return kind_named(str(value))


def _each(value: object, change: Callable[[object], object]) -> object:
    """`value` with `change` applied to every part of it, outside first."""
    value = change(value)
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in cast("Json", value).items()}
    if isinstance(value, list | tuple):
        return [_each(part, change) for part in cast("list[object]", value)]
    return value


def _pack(value: object) -> object:
    return {"float": str(value)} if isinstance(value, float) and not isfinite(value) else value


def _unpack(value: object) -> object:
    for number in (float("inf"), float("-inf"), float("nan")):
        if value == {"float": str(number)}:
            return number
    return value
