"""What a traced run of the user's program leaves behind: one list of events, each with its place in the source.

A place is exact down to the syntax node in every user function on the stack. Statements and calls are properly
nested in time, so everything a statement did, however deep, is one interval of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch

from mugraph.ir.region import Argument
from mugraph.trace.run.varying import Varying
from mugraph.trace.syntax.nodes import Numbering
from mugraph.trace.syntax.source import Source

_COPIED = 1024


@dataclass(frozen=True, slots=True)
class Site:
    """Where in one user function's activation, and in those that called it.

    step:  index into the activation's steps
    nodes: the nodes being evaluated, outermost first: the calls that have begun and not ended
    """

    outer: Site | None
    activation: int
    step: int
    nodes: tuple[int, ...]

    def inside(self, activation: int) -> Iterator[int]:
        """Activations that were called by that one and led here, the innermost first; all where it did not."""
        site: Site | None = self
        while site is not None and site.activation != activation:
            yield site.activation
            site = site.outer

    def within(self, activation: int) -> Site | None:
        """The place in that activation that led here, if it did."""
        site: Site | None = self
        while site is not None and site.activation != activation:
            site = site.outer
        return site


@dataclass(frozen=True, slots=True)
class Record:
    """One PyTorch call made by user code or by library code on its behalf.

    problem: why it may be in no region
    inputs, outputs, writes: value numbers
    tf32: PyTorch's settings let it take TF32
    in_place: of a call that writes to a tensor and may be made again: its target as it was (`target` is what computes
              the same without writing, if anything does). Made twice, it leaves what it leaves when made once
    """

    site: Site
    target: str
    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    problem: str | None
    in_place: str = ""
    tf32: bool = False


@dataclass(frozen=True, slots=True)
class Was:
    """A list or dict as it was at one moment. items: a copy, unless there are many"""

    length: int
    items: list[object] | dict[object, object] | None

    @staticmethod
    def of(value: object) -> Was | None:
        if type(value) is list:
            items = cast("list[object]", value)
            return Was(len(items), list(items) if len(items) <= _COPIED else None)
        if type(value) is dict:
            pairs = cast("dict[object, object]", value)
            return Was(len(pairs), dict(pairs) if len(pairs) <= _COPIED else None)
        return None


STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something other than a PyTorch call that decides whether a region may hold this place.

    problem: None if harmless; name: what was called, or STATEMENT, which has no name
    mutates: the id of a list or dict written to, harmless if the same region made it
    before: what it was
    to_replace: the problem is only that the statement cannot be replaced; a function that has it may be called
    """

    site: Site
    name: str
    problem: str | None
    mutates: int | None = None
    to_replace: bool = False
    before: Was | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """An attribute or subscript read: `base.name`; `node` is the reading expression."""

    site: Site
    node: int
    base: object
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Compared:
    """Two numbers, of which at least one may be another at the next call. operator: of syntax"""

    site: Site
    operator: str
    left: object
    right: object
    result: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A list or dict display: writing to it stays private until it is stored somewhere."""

    site: Site
    node: int
    value: object


@dataclass(frozen=True, slots=True)
class ModuleCalled:
    """method: of PyTorch's own that was called by its name, as `super().forward(x)` does. None if the module was"""

    site: Site
    module: torch.nn.Module
    method: str | None = None


Event = Record | Happening | Loaded | Compared | Made | ModuleCalled


@dataclass(frozen=True, slots=True)
class Picked:
    """A view that was asked for by a number that varies. base: value number of the tensor it was asked of; record: of
    the call, as one that makes nothing"""

    base: int
    index: object
    record: Record


@dataclass(slots=True)
class Step:
    """One execution of one statement.

    event: the first event that belongs to it; names: the function's locals before it ran; at: how many steps had begun
    in all functions
    """

    node: int
    event: int
    names: Mapping[str, object]
    at: int = 0


@dataclass(slots=True)
class Activation:
    """One execution of one user function.

    node:     of its definition
    event, end: the events from its beginning to its end
    results:  (step, node) -> the value number of the tensor that the expression evaluated to
    returned: step -> what it returned
    ended:    the last step inside of `with` statements -> of each, the inner ones first: its own step, and the first
              event of the end of its contexts
    nodes:    of the calls begun and not ended (while recording)
    """

    index: int
    node: int
    site: Site | None
    event: int
    steps: list[Step] = field(default_factory=list[Step])
    results: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    returned: dict[int, object] = field(default_factory=dict[int, object])
    ended: dict[int, list[tuple[int, int]]] = field(default_factory=dict[int, list[tuple[int, int]]])
    names_at_end: Mapping[str, object] = field(default_factory=dict[str, object])
    end: int = -1
    nodes: list[int] = field(default_factory=list[int])
    globals: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class File:
    """An instrumented source file and the numbers of its nodes. is_own: whether it is the user's, or a library's."""

    source: Source
    numbering: Numbering
    is_own: bool = True


@dataclass
class Tape:
    """homeless: values made on the default device, which may be another than that of the program's inputs
    varying: value numbers of numbers that may be others at the next call
    picked: value numbers of views that are others where such a number is another one
    """

    events: list[Event] = field(default_factory=list[Event])
    activations: list[Activation] = field(default_factory=list[Activation])
    homeless: set[int] = field(default_factory=set[int])
    varying: dict[int, Varying] = field(default_factory=dict[int, Varying])
    picked: dict[int, Picked] = field(default_factory=dict[int, Picked])
