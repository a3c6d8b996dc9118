"""What a function's first statement calls. It tells calls apart by the shapes, strides, types and devices of tensors,
by whether gradients are wanted, by flags, whole numbers and short strings, and by what a module is made of
(`structures.py`). Of whole numbers the first few values count; calls with others are put together.

It runs before every call, so it is quick for what was seen before: it builds a key, finds it and has the call timed, in
a few microseconds. If a function is called so often that this would be felt, it looks at one call in 8 or in 32. Only a
new key leads to `_remember`, which writes the arguments down and takes a picture of the call (`pictures.py`).
"""

from __future__ import annotations

import itertools
import sys
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, cast

from .clock import Clock, Time
from .instrument import Parameter, Signature
from .passed import Passed
from .pictures import picture
from .plain import held_by
from .structures import Structures, jit_traces
from .words import Opaque, words

MOST_SETS = 2_048
"""Sets of arguments that are kept for one function. Calls unlike all of them are counted together."""
MOST_PICTURES = 8
"""Sets of a function of which a picture is taken at once: at the first call, and again at the second, when what the
first one sets up is there."""
MANY_CALLS = 16
"""Any other set has its picture taken when it has been met so often."""
MOST_NUMBERS = 8
"""Values of whole numbers that are told apart for calls that are equal otherwise: a counter has another at each."""
WORD = 32
"""Characters of a string that may choose between ways of computing ("causal"); longer ones are data."""
NEVER = sys.maxsize
ENOUGH = 200
"""After so many calls without a tensor a function is not looked at any more."""

WINDOW = 256
"""Calls looked at between two looks at the clock."""
OFTEN_S = ((300e-6, 1), (50e-6, 8))
"""A function called at longer intervals than this is looked at every so many calls, else at every 32nd."""
_SKIPS = {8: (5, 9, 7, 8, 6, 10, 4), 32: (29, 37, 31, 26, 34, 23, 37)}
"""Calls left out between two that are looked at: 7 or 31 on average, without a rhythm that a program might have as
well."""


@dataclass(frozen=True, eq=False)
class Made:
    """How a module was made: its class and its constructor's arguments, None where they cannot be written."""

    kind: type
    arguments: Mapping[str, str] | None


@dataclass(eq=False)
class Seen:
    """One set of arguments. number: OTHERS for calls unlike all that are kept. opaque: of those that cannot be
    written, the type. picture: of a call, until the spool has it. picture_at: how many calls until one is taken.
    written: what the spool says of calls and times. gradients: whether they were wanted. wanted_of: arguments that want
    one. strides: of arguments that are not contiguous. structure: of the module that it is a method of. numbers: whole
    numbers among the arguments, None for one that has many values. spans: of these, the least and the largest value
    that was looked at, by the argument's place."""

    function: Signature
    number: int
    arguments: Mapping[str, str]
    opaque: Mapping[str, str]
    devices: tuple[str, ...]
    init: Mapping[str, str] | None
    gradients: bool = False
    wanted_of: tuple[str, ...] = ()
    strides: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    structure: str | None = None
    numbers: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    spans: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])
    calls: int = 1
    written: tuple[float, ...] = ()
    picture: dict[str, Any] | None = None
    picture_at: int = NEVER
    time: Time = field(default_factory=Time)
    on_device: bool = False

    def widen(self, values: tuple[Any, ...]) -> None:
        """values: of the arguments of one more of these calls"""
        for at, (least, largest) in self.spans.items():
            number = values[at]
            if not least <= number <= largest:
                self.spans[at] = min(least, number), max(largest, number)

    @property
    def named_spans(self) -> dict[str, tuple[int, int]]:
        first = 1 if self.function.owner is not None else 0
        return {self.function.parameters[at - first].name: span for at, span in self.spans.items()}


OTHERS = -1


@dataclass
class _Known:
    """The sets of one function by their keys. values: by a key without numbers, how many sets differ only in them."""

    sets: dict[Hashable, Seen] = field(default_factory=dict[Hashable, Seen])
    values: dict[Hashable, int] = field(default_factory=dict[Hashable, int])


@dataclass(eq=False)
class _Nothing:
    """Calls without a tensor."""

    calls: int = 0


class Looks:
    """All functions of the program.

    slots: the builtin list
    say:   called with a set that is new, or has more to it, and with the seconds that the run has taken
    say_passed: called now and then, to say what was passed over so far
    """

    def __init__(
        self,
        say: Callable[[Seen, float], None],
        passed: Passed | None = None,
        say_passed: Callable[[], None] = lambda: None,
    ) -> None:
        self.slots: list[Callable[..., None] | None] = []
        self.sets: list[Seen] = []
        self._passed = passed if passed is not None else Passed()
        self.clock = Clock(self.tell, passed=self._passed)
        self._say, self._say_passed = say, say_passed
        self._made: dict[int, Made] = {}
        self._kinds: dict[tuple[type, tuple[tuple[str, str], ...] | None], Made] = {}
        self._alive: dict[int, weakref.ref[object]] = {}
        self._tensors: set[type] = set()
        self._structures = Structures()

    def register(self, signature: Signature) -> int:
        slot = len(self.slots)
        if signature.name.endswith("__init__") and signature.owner is not None:
            self.slots.append(self._constructor(signature, slot))
        else:
            self.slots.append(self._function(signature, slot))
        return slot

    def tell(self) -> None:
        """What is known now."""
        self.clock.read()
        for seen in list(self.sets):
            self._say(seen, self.clock.run)
        self._say_passed()

    def finish(self) -> None:
        self.clock.apart(self.tell)

    def forked(self) -> None:
        """In a child made by fork: what its parent counts is not counted twice."""
        self.clock.forget()
        self._passed.forked()
        for seen in self.sets:
            seen.calls, seen.time, seen.written = 0, Time(), (0, 0.0, 0)

    def _function(self, signature: Signature, slot: int) -> Callable[..., None]:
        of_function = _Known()
        known = of_function.sets
        made, tensors, slots, clock = self._made, self._tensors, self.slots, self.clock
        is_method, timed = signature.owner is not None, signature.timed
        structure_of = self._structures.of
        nothing = _Nothing()
        now = time.monotonic
        skips = {weight: itertools.cycle(counts) for weight, counts in _SKIPS.items()}
        skip, left, weight, since = 0, WINDOW, 1, now()

        def key_of(values: tuple[Any, ...], numbers: bool = True) -> list[Hashable]:
            key: list[Hashable] = []
            add, gradients = key.append, wants_gradients()
            for value in values:
                kind = type(value)  # pyright: ignore[reportUnknownVariableType] - of anything
                if kind in tensors:
                    wanted = gradients and value.requires_grad
                    key += value.shape, value.dtype, value.device, strides_of(value), wanted
                elif kind is bool or (kind is str and len(value) <= WORD):
                    add(value)
                elif kind is int and numbers:
                    key += int, value
                elif kind is tuple or kind is list or kind is dict:
                    add(_inside(value, tensors))
                else:
                    add(kind)  # pyright: ignore[reportUnknownArgumentType]
            if is_method:
                key[0] = made.get(id(values[0])) or cast(Any, type(values[0]))
                trains = held_by(values[0]).get("training")
                key += trains, structure_of(values[0], trains)
            add(gradients)
            return key

        def look(*values: Any) -> None:
            nonlocal skip, left, weight, since
            if skip:
                skip -= 1
                return
            try:
                key = key_of(values)
                frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the user's function
                seen = known.get(tuple(key))
                if seen is None:
                    if jit_traces():  # sizes are tensors then
                        return
                    if self._learn_kinds(values):
                        key = key_of(values)
                        seen = known.get(tuple(key))
                rough: tuple[Hashable, ...] = ()
                if seen is None:
                    rough = tuple(key_of(values, numbers=False))
                    if of_function.values.get(rough, 0) >= MOST_NUMBERS:
                        key = [*rough, MOST_NUMBERS]  # no key of another set
                        seen = known.get(tuple(key))
                if seen is not None:
                    seen.calls += weight
                    if seen.spans:
                        seen.widen(values)
                    if seen.calls >= seen.picture_at:
                        clock.apart(lambda: self._take(seen, values, frame))
                    if timed:
                        clock.begin(slot, frame, seen.time, weight, seen.on_device)
                    left -= 1
                    if weight > 1:
                        skip = next(skips[weight])
                    if not left:
                        apart = (now() - since) / (WINDOW * weight)
                        left, weight, since = WINDOW, next((n for s, n in OFTEN_S if apart > s), 32), now()
                    return
                found = clock.apart(lambda: self._remember(signature, values, of_function, frame, rough))
                if found is None:
                    nothing.calls += 1
                    if nothing.calls > ENOUGH and nothing.calls > sum(one.calls for one in known.values()):
                        slots[slot] = None
                    return
                if found.number != OTHERS:
                    known[tuple(key)] = found
                    of_function.values[rough] = of_function.values.get(rough, 0) + 1
                if timed:
                    clock.begin(slot, frame, found.time, 1, found.on_device)
                left, weight, since = WINDOW, 1, now()
            except Exception as error:  # a tensor without sizes, a namespace that changes: the program goes on
                self._passed.note(signature.file, signature.name, "a call", error)

        return look

    def _constructor(self, signature: Signature, slot: int) -> Callable[..., None]:
        strangers = 0

        def look(self_: object, *values: object) -> None:
            nonlocal strangers
            try:
                if id(self_) in self._made:
                    return  # the constructor of a class it inherits from
                module = _torch("nn.Module")
                if module is None or not isinstance(self_, module):
                    strangers += 1
                    if strangers > ENOUGH:
                        self.slots[slot] = None
                    return
                self._note_made(self_, signature, values, sys._getframe(1).f_globals)  # pyright: ignore[reportPrivateUsage]
            except Exception as error:  # the user's program goes on; this object is not recorded
                self._passed.note(signature.file, signature.name, "how an object is made", error)

        return look

    def _note_made(
        self, instance: object, signature: Signature, values: tuple[object, ...], namespace: Mapping[str, object]
    ) -> None:
        arguments, opaque = _described(signature.parameters, values, namespace)
        kind = type(instance)
        given = None if opaque else arguments
        key = (kind, tuple(given.items()) if given is not None else None)
        place = id(instance)
        self._made[place] = self._kinds.setdefault(key, Made(kind, given))

        def gone(_: object) -> None:
            self._made.pop(place, None)
            self._alive.pop(place, None)

        self._alive[place] = weakref.ref(instance, gone)

    def _learn_kinds(self, values: tuple[object, ...]) -> bool:
        """Whether one of the values is of a kind of tensor that was not known as one."""
        tensor = _torch("Tensor")
        new = {type(value) for value in _leaves(values) if tensor is not None and isinstance(value, tensor)}
        new = {kind for kind in new if not kind.__module__.startswith("torch._")} - self._tensors  # fake, functional
        self._tensors |= new
        return bool(new)

    def _remember(
        self,
        signature: Signature,
        values: tuple[object, ...],
        of_function: _Known,
        frame: FrameType,
        rough: tuple[Hashable, ...],
    ) -> Seen | None:
        """Writes the arguments down as a set. None if no tensor is among them. rough: its key without numbers"""
        known, alike = of_function.sets, of_function.values.get(rough, 0)
        owner = values[0] if signature.owner is not None else None
        given = values[1:] if signature.owner is not None else values
        tensors = [value for value in _leaves(given) if type(value) in self._tensors]
        if not tensors:
            return None
        devices = tuple(dict.fromkeys(str(cast(Any, tensor).device) for tensor in tensors))
        if len(known) >= MOST_SETS:
            return self._other(signature, devices)
        arguments, opaque = _described(signature.parameters, given, frame.f_globals)
        made = self._made.get(id(owner)) or self._like(type(owner))
        exact = made is not None and made.kind.__qualname__ == signature.owner
        seen = Seen(signature, len(known), arguments, opaque, devices, made.arguments if made and exact else None)
        seen.structure = self._structures.known(owner)
        seen.gradients = wants_gradients()
        of_tensors = [
            (parameter.name, cast(Any, value))
            for parameter, value in zip(signature.parameters, given, strict=True)
            if type(value) in self._tensors
        ]
        seen.wanted_of = tuple(name for name, value in of_tensors if seen.gradients and value.requires_grad)
        seen.strides = {name: strides for name, value in of_tensors if (strides := strides_of(value)) is not None}
        seen.on_device = any(device.startswith("cuda") for device in devices)
        seen.numbers = {
            parameter.name: value if alike < MOST_NUMBERS else None
            for parameter, value in zip(signature.parameters, given, strict=True)
            if type(value) is int
        }
        if alike >= MOST_NUMBERS:
            seen.spans = {at: (value, value) for at, value in enumerate(values) if type(value) is int}
        few = len(of_function.values) < MOST_PICTURES  # calls that differ in a number alone leave others their pictures
        at_once = len(known) < MOST_PICTURES or (few and alike in (0, MOST_NUMBERS))
        if at_once:
            seen.picture = self._pictured(signature, values, frame)
        seen.picture_at = 2 if at_once else MANY_CALLS
        self.sets.append(seen)
        self._say(seen, self.clock.run)
        return seen

    def _take(self, seen: Seen, values: tuple[object, ...], frame: FrameType) -> None:
        seen.picture_at = NEVER
        seen.picture = self._pictured(seen.function, values, frame)
        self._say(seen, self.clock.run)

    def _pictured(self, signature: Signature, values: tuple[object, ...], frame: FrameType) -> dict[str, Any] | None:
        """None for a call that cannot be pictured; its arguments' words remain."""
        owner = values[0] if signature.owner is not None else None
        given = values[1:] if signature.owner is not None else values
        stars = {"one": "", "many": "*", "named": "**"}
        names = [stars[parameter.kind] + parameter.name for parameter in signature.parameters]
        try:
            return picture(owner, dict(zip(names, given, strict=True)), frame.f_code, frame.f_globals)
        except Exception as error:  # an object whose attributes change while they are read, a recursion too deep
            self._passed.note(signature.file, signature.name, "the objects of a call", error)
            return None

    def _other(self, signature: Signature, devices: tuple[str, ...]) -> Seen:
        for seen in self.sets:
            if seen.function is signature and seen.number == OTHERS:
                seen.calls += 1
                return seen
        seen = Seen(signature, OTHERS, {}, {}, devices, None)
        self.sets.append(seen)
        return seen

    def _like(self, kind: type) -> Made | None:
        """How a copy of a module was made: as the last module of its class, since no constructor made it."""
        found = [made for (one, _), made in self._kinds.items() if one is kind]
        return found[-1] if found else None


def _described(
    parameters: tuple[Parameter, ...], values: tuple[object, ...], namespace: Mapping[str, object]
) -> tuple[dict[str, str], dict[str, str]]:
    """Texts of the arguments without defaults, and the types of those that are needed and have no text."""
    tensor = _torch("Tensor") or type("_None", (), {})
    texts: dict[str, str] = {}
    opaque: dict[str, str] = {}
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.kind == "many":
            if value:
                opaque[f"*{parameter.name}"] = "tuple"
            continue
        pairs = {parameter.name: value}
        if parameter.kind == "named":
            pairs = cast("dict[str, object]", value)
        for name, one in pairs.items():
            try:
                text = words(one, tensor, namespace)
            except Opaque as error:
                if parameter.default is None:
                    opaque[name] = str(error)
                continue
            if text != parameter.default:
                texts[name] = text
    return texts, opaque


def _inside(value: Any, tensors: set[type]) -> Hashable:
    """The key of a container's elements."""
    kind = cast(type[object], type(value))
    if kind in tensors:
        return (value.shape, value.dtype, value.device)
    if kind is tuple or kind is list:
        return (kind, *(_inside(item, tensors) for item in value[:64]), len(value))
    if kind is dict:
        pairs = list(value.items())[:64]
        return (kind, *((key, _inside(item, tensors)) for key, item in pairs if type(key) is str), len(value))
    return value if kind is bool else kind


def _leaves(value: object, depth: int = 0) -> list[object]:
    if depth > 4:
        return []
    if isinstance(value, tuple | list):
        return [leaf for item in cast("list[object]", value)[:64] for leaf in _leaves(item, depth + 1)]
    if type(value) is dict:
        items = list(cast("dict[object, object]", value).values())[:64]
        return [leaf for item in items for leaf in _leaves(item, depth + 1)]
    return [value]


def strides_of(tensor: Any) -> tuple[int, ...] | None:
    """None for a contiguous one, and for one that has none."""
    try:
        return None if tensor.is_contiguous() else tuple(map(int, tensor.stride()))
    except RuntimeError:  # sparse, nested
        return None


def wants_gradients() -> bool:
    asked = getattr(sys.modules.get("torch"), "is_grad_enabled", None)  # it calls others while it is imported
    return asked is not None and asked()


def _torch(name: str) -> type | None:
    """A class of torch's, once the program has imported it."""
    found: Any = sys.modules.get("torch")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None
