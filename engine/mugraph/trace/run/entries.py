"""Where tracing starts: the functions and classes of a file whose arguments are described, and those that lack it.

The first description that applies counts: a `# mugraph:` comment, jaxtyping annotations, KernelBench's
`Model`, `get_init_inputs`, `get_inputs`, and calls recorded from a run of the user's program. A recorded object comes
before constructor arguments that no comment has given.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mugraph.ir.ranges import SizeRange
from mugraph.ir.region import Range
from mugraph.trace.picture import Picture
from mugraph.trace.syntax.definitions import (
    callers_on_self,
    definitions,
    is_module_class,
    is_static,
    is_tensor_code,
    method_of,
    name_range,
    parameters_of,
)
from mugraph.trace.syntax.nodes import Function
from mugraph.trace.syntax.shape_comments import Misplaced, ShapeComments
from mugraph.trace.syntax.shapes import (
    BadShapes,
    Description,
    Spec,
    TensorSpec,
    annotated,
    names_in_annotation,
    parse_description,
    parse_spec,
)
from mugraph.trace.syntax.size_ranges import is_range, largest_of
from mugraph.trace.syntax.source import Source
from mugraph.trace.syntax.tensor_arguments import shapes_hint

RecordedShapes = Mapping[str, Mapping[str, str]]
"""Qualified name -> argument's name -> what was seen, as in a comment: "f16[16, 4096]". A module's constructor's
arguments are those of "Block.__init__". A size that has a range is one of the arguments, as in a comment: "1..64"."""


@dataclass(frozen=True)
class Entry:
    """One thing to run.

    kind:      "function": call it; "module": build the class `owner` and call it (or its `method`);
               "kernelbench": the file says itself how
    function:  of the definition that runs: what the user calls it ("Block.forward")
    init:      constructor arguments, None for the defaults
    positional: the arguments that are passed by position, in order
    sizes:     the ranges of sizes that its arguments have, as far as they have been declared
    picture:   of a recorded call of it, or of another method of its class: the object, and, if `arguments` is empty,
               the arguments
    was_recorded: the arguments are recorded ones, of which a size has a range: the object goes with them as it is
    with_objects: arguments that no words describe are as the picture has them
    on_gpu:    what it is told that asks where a tensor is (gpu_answers.py)
    """

    kind: Literal["function", "module", "kernelbench"]
    function: str
    owner: str | None
    method: str
    arguments: Mapping[str, Spec]
    init: Mapping[str, Spec] | None
    range: Range
    positional: tuple[str, ...] = ()
    sizes: tuple[SizeRange, ...] = ()
    picture: Picture | None = None
    was_recorded: bool = False
    with_objects: bool = False
    on_gpu: bool = True


@dataclass(frozen=True)
class Missing:
    """Tensor code without (usable) shapes. range: of the name in its first line."""

    function: str
    range: Range
    text: str
    reason: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class Definitions:
    entries: tuple[Entry, ...]
    missing: tuple[Missing, ...]
    names: frozenset[str]
    misplaced: tuple[Misplaced, ...] = ()


def _annotated_arguments(function: Function, sizes: Mapping[str, int]) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for parameter in parameters_of(function):
        spec = annotated(parameter.annotation, sizes) if parameter.annotation is not None else None
        if spec is not None:
            found[parameter.arg] = spec
    return found


class _Finder:
    def __init__(
        self,
        source: Source,
        recorded: RecordedShapes,
        pick: Callable[[SizeRange], int],
        pictures: Mapping[str, Picture],
    ) -> None:
        self.source = source
        self.pick = pick
        self.pictures = pictures
        self.recorded: dict[str, Mapping[str, str]] = {**{name: {} for name in pictures}, **recorded}
        for name in pictures:
            if not any(map(is_range, self.recorded[name].values())):
                self.recorded[name] = {}
        self.of_runs: set[str] = set()
        self.comments = ShapeComments(source)
        self.entries: dict[str, Entry] = {}
        self.missing: dict[str, Missing] = {}
        self.nodes = {one.name: (one.node, one.owner) for one in definitions(source.tree)}
        self.is_kernelbench = "Model" in self.nodes and "get_inputs" in self.nodes

    def find(self) -> Definitions:
        for name, (node, owner) in self.nodes.items():
            try:
                self.one(name, node, owner)
            except BadShapes as error:
                self.lacks(name, node, str(error))
        misplaced = tuple(self.comments.misplaced({name: node for name, (node, _) in self.nodes.items()}))
        missing = [self.pointed(found, misplaced) for name, found in self.missing.items() if name not in self.entries]
        return Definitions(tuple(self.entries.values()), tuple(missing), frozenset(self.nodes), misplaced)

    def pointed(self, found: Missing, misplaced: Sequence[Misplaced]) -> Missing:
        """Its reason, if there is one, is a comment that stands where none is read."""
        meant = (one.sentence for one in misplaced if found.function in (one.function, f"{one.function}.forward"))
        return replace(found, reason=next(meant, found.reason))

    def one(self, name: str, node: Function | ast.ClassDef, owner: ast.ClassDef | None) -> None:
        texts = self.comments.said(node)
        said = parse_description(texts, self.pick) if texts else Description({}, None, {})
        if isinstance(node, ast.ClassDef):
            self.of_class(name, node, said)
        elif owner is None:
            self.of_function(name, node, said)
        elif not is_static(node) and node.name != "__init__":
            self.of_method(name, node, said)

    def of_class(self, name: str, node: ast.ClassDef, said: Description) -> None:
        forward = method_of(node, "forward")
        full = f"{name}.forward"
        if said.init is None and self.object_of(name) is None and (seen := self.recorded.get(f"{name}.__init__")):
            said = replace(said, init={key: parse_spec(text) for key, text in seen.items()})
        if forward is None:
            if any(_has_tensor(spec) for spec in said.arguments.values()):  # inherited
                self.add(Entry("module", full, name, "__call__", said.arguments, said.init, self.place(node)))
            elif self.is_kernelbench and name == "Model":
                self.add(Entry("kernelbench", full, name, "__call__", {}, None, self.place(node)))
            return
        arguments = self.described(full, name, forward, said)
        if arguments is not None:
            sizes = self.ranges_of(full, forward, said)
            self.add(
                Entry("module", full, name, "__call__", arguments, said.init, self.place(node), sizes=sizes), forward
            )
        elif self.is_kernelbench and name == "Model":
            self.add(Entry("kernelbench", full, name, "__call__", {}, None, self.place(node)))
        elif is_module_class(node) and not self.comments.said(forward):
            self.lacks(full, node, shapes_hint(forward))

    def of_function(self, name: str, node: Function, said: Description) -> None:
        arguments = self.described(name, name, node, said)
        if arguments is not None:
            sizes = self.ranges_of(name, node, said)
            self.add(Entry("function", name, None, name, arguments, None, self.place(node), sizes=sizes), node)
        elif is_tensor_code(node) and not (self.is_kernelbench and name.startswith("get_")):
            self.lacks(name, node, shapes_hint(node))

    def of_method(self, name: str, node: Function, said: Description) -> None:
        if name in self.entries:
            return  # described with its class
        class_name = name.rpartition(".")[0]
        owner_node = self.nodes[class_name][0]
        of_class_said = self.comments.said(owner_node)
        if of_class_said:
            of_class = parse_description(of_class_said, self.pick)
            ranges = {name: size for name, size in of_class.ranges.items() if name not in said.sizes}
            sizes = {**of_class.sizes, **said.sizes}
            made = said.init or of_class.init
            said = Description(said.arguments, made, sizes, {**ranges, **said.ranges}, said.named)
        is_pictured = self.object_of(class_name) is not None
        if said.init is None and not is_pictured and (made := self.recorded.get(f"{class_name}.__init__")):
            said = replace(said, init={key: parse_spec(text) for key, text in made.items()})
        # What other methods of the class call is traced where they call it.
        callers = {f"{class_name}.{caller}" for caller in callers_on_self(owner_node, node.name)}
        alone = name in self.recorded and not callers & (self.recorded.keys() | self.entries.keys())
        if said.arguments or alone:
            arguments = self.described(name, name, node, said)
            if arguments is not None and (not arguments or any(map(_has_tensor, arguments.values()))):
                method = "__call__" if node.name == "forward" else node.name
                sizes = self.ranges_of(name, node, said)
                entry = Entry("module", name, class_name, method, arguments, said.init, self.place(node), sizes=sizes)
                self.add(entry, node)

    def ranges_of(self, full: str, function: Function, said: Description) -> tuple[SizeRange, ...]:
        """The ranges of sizes that the arguments have. Raises BadShapes where nothing has one of them."""
        if full in self.of_runs and (seen := self.ranged(full, full)) is not None:
            return tuple(seen.ranges.values())
        words = [names_in_annotation(p.annotation) for p in parameters_of(function) if p.annotation is not None]
        numbers = {p.arg for p in parameters_of(function)}  # a position, from which a size follows
        lacking = next((name for name in said.ranges if name not in said.named.union(numbers, *words)), None)
        if lacking is not None:
            raise BadShapes(f"no argument of {full} has the size “{lacking}”; use it in a shape, or take it out")
        return tuple(said.ranges.values())

    def described(self, full: str, name: str, function: Function, said: Description) -> dict[str, Spec] | None:
        """The arguments by the first description that says anything about a tensor."""
        parameters = {parameter.arg for parameter in parameters_of(function)}
        unknown = [key for key in said.arguments if key not in parameters and key not in said.sizes]
        if unknown and function.args.kwarg is None:
            names = ", ".join(sorted(parameters - {"self"})) or "no arguments"
            raise BadShapes(f"{full} has no argument “{unknown[0]}”; it takes {names}")
        typed = _annotated_arguments(function, said.sizes) if not any(map(_has_tensor, said.arguments.values())) else {}
        given = {key: spec for key, spec in said.arguments.items() if key in parameters or key not in said.sizes}
        arguments = {**typed, **given}
        if any(_has_tensor(spec) for spec in arguments.values()):
            return arguments
        if (ranged := self.ranged(full, name)) is not None:
            self.of_runs.add(full)
            sizes = ranged.ranges.keys() - parameters  # others are whole numbers among the arguments as well
            return {key: spec for key, spec in ranged.arguments.items() if key not in sizes}
        if full in self.pictures or name in self.pictures:
            return {}
        seen = self.recorded.get(full) or self.recorded.get(name)
        return {key: parse_spec(text) for key, text in seen.items()} if seen else None

    def ranged(self, full: str, name: str) -> Description | None:
        """What was recorded, if a size of it has a range."""
        seen = self.recorded.get(full) or self.recorded.get(name) or {}
        if not any(map(is_range, seen.values())):
            return None
        return parse_description([f"{key}={text}" for key, text in seen.items()], self.pick)

    def object_of(self, owner: str) -> Picture | None:
        """A recorded object of the class."""
        return next((one for name, one in self.pictures.items() if name.rpartition(".")[0] == owner), None)

    def add(self, entry: Entry, function: Function | None = None) -> None:
        if entry.init is None and entry.kind != "kernelbench":
            of_class = self.object_of(entry.owner) if entry.owner is not None else None
            entry = replace(entry, picture=self.pictures.get(entry.function, of_class))
        positional: list[str] = []
        for parameter in [*function.args.posonlyargs, *function.args.args] if function is not None else []:
            if parameter.arg in entry.arguments or not entry.arguments:
                positional.append(parameter.arg)
            elif parameter.arg not in ("self", "cls"):
                break  # one with a default: the rest goes by name
        was_recorded = entry.function in self.of_runs
        with_objects = was_recorded and entry.picture is not None and entry.function in self.pictures
        self.entries[entry.function] = replace(
            entry, positional=tuple(positional), was_recorded=was_recorded, with_objects=with_objects
        )

    def place(self, node: Function | ast.ClassDef) -> Range:
        return name_range(self.source, node)[0]

    def lacks(self, name: str, node: Function | ast.ClassDef, reason: str) -> None:
        where, text = name_range(self.source, node)
        forward = method_of(node, "forward") if isinstance(node, ast.ClassDef) else node
        full = f"{name}.forward" if isinstance(node, ast.ClassDef) and not name.endswith(".forward") else name
        args = tuple(parameter.arg for parameter in parameters_of(forward)) if forward is not None else ()
        self.missing[full] = Missing(full, where, text, reason, args)


def _has_tensor(spec: Spec) -> bool:
    return isinstance(spec, TensorSpec) or (isinstance(spec, tuple) and any(_has_tensor(item) for item in spec))


def find_definitions(
    source: Source,
    recorded: RecordedShapes | None = None,
    pick: Callable[[SizeRange], int] = largest_of,
    pictures: Mapping[str, Picture] | None = None,
) -> Definitions:
    """Entries and the tensor code that lacks shapes. Raises SyntaxError if the source does not parse.

    pick: the size that stands for a range
    """
    return _Finder(source, recorded or {}, pick, pictures or {}).find()
