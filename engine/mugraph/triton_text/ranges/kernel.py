"""The language of kernels, read once for every block of every size."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.functions import FUNCTIONS, METHODS, indexed
from mugraph.triton_text.handles import Method, Nothing, PointerKind, Range
from mugraph.triton_text.hosts import host_builtin
from mugraph.triton_text.language import is_host
from mugraph.triton_text.ranges.accesses import Access, Choice, Launch, Place
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.evaluator import Passes, RangesEvaluator
from mugraph.triton_text.ranges.formulas import TRUE, Formula, at_most, every, less, opposite, same, some
from mugraph.triton_text.ranges.poly import ONE, Poly, atom, number
from mugraph.triton_text.ranges.shaped import SHAPED, indexed_pairs, shaped
from mugraph.triton_text.ranges.values import (
    Bools,
    Ints,
    Pointers,
    Tile,
    as_bools,
    as_ints,
    nowhere,
    rearranged,
    scalar,
    stretched,
    together,
)
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import Function, Named, listed
from mugraph.triton_text.tiles import FLOATS, RAW, Floats, Kind, common
from mugraph.triton_text.waits import STARTS_NEXT, WAITS, Waiting

_NUMBERS = (*FLOATS, "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_AS_IT_IS = {"tl.multiple_of", "tl.max_contiguous", "tl.max_constancy", "tl.constexpr"}
_OF = Arithmetic(None)


class KernelReading:
    """One launch of a kernel. What it finds is in the launch."""

    def __init__(self, launch: Launch, atoms: Atoms) -> None:
        self.launch, self.atoms = launch, atoms
        self.evaluator = RangesEvaluator(self)
        self._loops: list[str] = []
        self._ways: list[Formula] = []
        self._waiting = Waiting(launch.kernel, launch.start)

    def execute(self, function: Function, arguments: Mapping[str, Any], line: int = 0) -> None:
        """line: of the launch"""
        self.evaluator.run(function, (), arguments)
        self._waiting.check_end(line)

    @property
    def _place(self) -> Place:
        return Place(self.evaluator.line, tuple(self._loops), tuple(self._ways))

    # --- Language

    def binary(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, Kind | PointerKind | Named) or isinstance(b, Kind | PointerKind | Named):
            if op in ("==", "!="):
                return (a == b) == (op == "==")
            raise Unreadable(f"{op} of types is not read")
        if op in ("==", "!=") and (a is None or b is None):
            return op == "!="
        if isinstance(a, Pointers) or isinstance(b, Pointers):
            return self._moved(op, a, b)
        if op == "/" or any(isinstance(one, float | Floats) for one in (a, b)):
            return self._of_floats(op, a, b)
        if op in ("<", "<=", ">", ">=", "==", "!="):
            return self._compared(op, as_ints(a), as_ints(b))
        if isinstance(a, Bools) or isinstance(b, Bools):
            return self._of_bools(op, as_bools(a), as_bools(b))
        return self._of_ints(op, as_ints(a), as_ints(b))

    def unary(self, op: str, a: Any) -> Any:
        match op, a:
            case "-", Floats():
                return a
            case "-", Ints(shape, value, lanes):
                return Ints(shape, None if value is None else -value, lanes)
            case "~", Bools(shape, value, lanes):
                return Bools(shape, None if value is None else opposite(value), lanes)
            case _:
                raise Unreadable(f"{op} of {type(a).__name__} is not read")

    def attribute(self, owner: Any, name: str) -> Any:
        match owner, name:
            case Named(full), _:
                last = full.rsplit(".", 1)[-1]
                return Kind(last) if full.startswith(("tl.", "torch.")) and last in _NUMBERS else owner
            case Floats(kind=kind), "dtype" | "type":
                return Kind(kind)
            case Pointers(memory), "dtype" | "type":
                return PointerKind(Kind(memory.kind))
            case PointerKind(), "element_ty":
                return owner.element_ty
            case Floats() | Ints() | Bools() | Pointers(), "shape":
                return owner.shape
            case Floats() | Ints() | Bools(), "T":
                return self._named("tl.trans", [owner], {})
            case ((Floats() | Ints() | Bools()), _):
                return Method(owner, name)
            case _ if name == "value" and is_host(owner):
                return owner
            case _ if name == "to" and is_host(owner):
                return Method(self._floats(owner) if isinstance(owner, float) else as_ints(owner), name)
            case _:
                raise Unreadable(f"{name} of {type(owner).__name__} is not read")

    def subscript(self, owner: Any, key: Any) -> Any:
        match owner:
            case Floats():
                return indexed(_OF, owner, key)
            case Ints() | Bools():
                return rearranged(owner, partial(indexed_pairs, listed(key)))
            case Pointers(memory, offsets):
                found = rearranged(offsets, partial(indexed_pairs, listed(key)))
                assert isinstance(found, Ints)
                return Pointers(memory, found)
            case _:
                raise Unreadable(f"an element of {type(owner).__name__} is taken")

    def truth(self, value: Any) -> bool:
        if isinstance(value, Kind | Method | PointerKind | Function):
            return True
        raise Unreadable("what is done depends on what is computed")

    def loop(self, iterable: Any) -> Passes:
        if not isinstance(iterable, Range):
            raise Unreadable("a loop over what is no range")
        start, stop, step = (as_ints(end).value for end in (iterable.start, iterable.stop, iterable.step))
        if start is None or stop is None or step is None or step.constant is None or step.constant < 1:
            raise Unreadable("the ends of a loop are not known")
        count = (stop - start).constant
        if count is not None and 0 < count <= step.constant:
            return Passes(scalar(start), self._pass(None))
        counter, value = self.atoms.counted(f"pass in line {self.evaluator.line}", start, stop, step.constant)
        return Passes(scalar(value), self._pass(counter))

    @contextmanager
    def _pass(self, counter: str | None) -> Generator[None]:
        self._loops += [counter] if counter is not None else []
        yield
        if counter is not None:
            self._loops.pop()

    @contextmanager
    def way(self, test: Bools, *, holds: bool) -> Generator[None]:
        if test.value is None or test.shape != ():
            raise Unreadable("what is done depends on what is computed")
        self._ways.append(test.value if holds else opposite(test.value))
        yield
        self._ways.pop()

    def call(self, function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match function:
            case Function():
                return self.evaluator.called(function, arguments, named)
            case Method(owner, name) if name in METHODS:
                return self._named(METHODS[name], [owner, *arguments], named)
            case Named(name):
                return self._named(name, arguments, named)
            case Kind():
                return self._cast(arguments[0], function)
            case _:
                raise Unreadable(f"a call of {type(function).__name__} is not read")

    def _named(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        own = _OWN.get(name)
        if own is not None:
            return getattr(self, own)(*arguments, **named)
        if name in WAITS:
            return self._wait()
        if name in STARTS_NEXT:
            return None
        if name in _AS_IT_IS:
            return arguments[0]
        if name in ("builtins.range", "tl.range", "tl.static_range"):
            ends = [*arguments, *([named["step"]] if "step" in named else [])]
            start, stop, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1) if len(ends) == 2 else ends
            return Range(start, stop, step)
        if name.startswith("builtins.") and all(is_host(one) for one in arguments):
            return host_builtin(name.removeprefix("builtins."), arguments)
        if name in ("builtins.min", "builtins.max"):
            return self._larger(name == "builtins.max", *arguments[:2])
        if name in SHAPED and isinstance(arguments[0], Ints | Bools):
            return shaped(name, arguments[0], arguments[1:], named)
        if name in FUNCTIONS:
            given = [self._floats(one) if isinstance(one, Ints | Bools) else one for one in arguments]
            return FUNCTIONS[name](_OF, *given, **named)
        raise Unreadable(f"{name} is not read")

    # --- arithmetic

    def _moved(self, op: str, a: Any, b: Any) -> Pointers:
        pointers, moved = (a, b) if isinstance(a, Pointers) else (b, a)
        if isinstance(moved, Pointers | float | Floats) or op not in ("+", "-") or (op == "-" and pointers is b):
            raise Wrong("type", f"{op} is no operation on a pointer")
        found = self._of_ints(op, pointers.offsets, as_ints(moved))
        return Pointers(pointers.memory, found)

    def _of_floats(self, op: str, a: Any, b: Any) -> Tile | float:
        one, two = (one if isinstance(one, float | int) else self._floats(one) for one in (a, b))
        if op in ("<", "<=", ">", ">=", "==", "!="):
            shape = common(*(one.shape if isinstance(one, Floats) else () for one in (one, two)))
            return Bools(shape, None, nowhere(shape))
        if not isinstance(one, Floats) and not isinstance(two, Floats):
            one = _OF.constant(float(one))
        found = _OF.binary(op, one, two)
        assert isinstance(found, Floats)
        return found

    def _floats(self, value: Any, kind: str = "float32") -> Floats:
        """What is computed of integers and masks is looked at later."""
        match value:
            case Floats():
                return value
            case Ints(shape, known, _):
                if known is not None:
                    self.launch.numbers.append((known, self.evaluator.line))
                return Floats(shape, kind, None)
            case Bools(shape, _, _):
                self._chosen(value)
                return Floats(shape, kind, None)
            case float() | int():
                return _OF.constant(float(value), kind)
            case _:
                raise Unreadable(f"{type(value).__name__} is no number")

    def _compared(self, op: str, a: Ints, b: Ints) -> Bools:
        shape, lanes = together(a, b)
        x, y = a.value, b.value
        if x is None or y is None:
            return Bools(shape, None, lanes)
        match op:
            case "<":
                found = less(x, y)
            case "<=":
                found = at_most(x, y)
            case ">":
                found = less(y, x)
            case ">=":
                found = at_most(y, x)
            case "==":
                found = same(x, y)
            case _:
                found = opposite(same(x, y))
        return Bools(shape, found, lanes)

    def _of_bools(self, op: str, a: Bools, b: Bools) -> Bools:
        shape, lanes = together(a, b)
        if a.value is None or b.value is None:
            return Bools(shape, None, lanes)
        match op:
            case "&" | "*":
                return Bools(shape, every((a.value, b.value)), lanes)
            case "|":
                return Bools(shape, some((a.value, b.value)), lanes)
            case _:
                raise Unreadable(f"{op} of masks is not read")

    def _of_ints(self, op: str, a: Ints, b: Ints) -> Ints:
        shape, lanes = together(a, b)
        x, y = a.value, b.value
        if x is None or y is None:
            return Ints(shape, None, lanes)
        match op:
            case "+":
                found = x + y
            case "-":
                found = x - y
            case "*":
                found = x * y
            case "//":
                found = self.atoms.quotient(x, y)
            case "%":
                found = self.atoms.remainder(x, y)
            case _:
                raise Unreadable(f"{op} of integers is not read")
        return Ints(shape, found, lanes)

    def _larger(self, larger: bool, x: Any, y: Any) -> Any:
        if any(isinstance(one, float | Floats) for one in (x, y)):
            return self._of_floats("+", x, y)
        a, b = as_ints(x), as_ints(y)
        shape, lanes = together(a, b)
        if a.value is None or b.value is None:
            return Ints(shape, None, lanes)
        found = (self.atoms.larger if larger else self.atoms.smaller)(a.value, b.value)
        return Ints(shape, found, lanes)

    def maximum(self, x: Any, y: Any, propagate_nan: Any = None) -> Any:
        return self._larger(True, x, y)

    def minimum(self, x: Any, y: Any, propagate_nan: Any = None) -> Any:
        return self._larger(False, x, y)

    def cdiv(self, x: Any, div: Any) -> Any:
        if is_host(x) and is_host(div):
            return -(-x // div)
        divisor = as_ints(div)
        return self._of_ints("//", self._of_ints("+", as_ints(x), self._of_ints("-", divisor, scalar(ONE))), divisor)

    def arange(self, start: Any, end: Any) -> Ints:
        if not isinstance(start, int) or not isinstance(end, int) or end <= start:
            raise Wrong("type", "the ends of tl.arange are no numbers, or not in order")
        size = end - start
        if size & (size - 1):
            raise Wrong("type", f"tl.arange has {size} elements, which is no power of two")
        lane = self.atoms.below(f"lane of tl.arange in line {self.evaluator.line}", "lane", number(size))
        return Ints((size,), number(start) + lane, (lane.atoms,))

    def where(self, condition: Any, x: Any, y: Any) -> Tile:
        mask = as_bools(condition)
        if any(isinstance(one, Pointers) for one in (x, y)):
            raise Unreadable("tl.where of pointers is not read")
        if not any(isinstance(one, float | Floats) for one in (x, y)):
            return self._whole_number(mask, as_ints(x), as_ints(y))
        self._chosen(mask)
        one, two = self._floats(x), self._floats(y)
        kind = one.kind if isinstance(x, Floats) else two.kind
        return Floats(common(mask.shape, common(one.shape, two.shape)), kind, None)

    def _whole_number(self, mask: Bools, x: Ints, y: Ints) -> Ints:
        shape, lanes = together(mask, x, y)
        if mask.value is None or x.value is None or y.value is None:
            return Ints(shape, None, lanes)
        return Ints(shape, self.atoms.chosen(mask.value, x.value, y.value), lanes)

    def _chosen(self, mask: Bools) -> None:
        """Of a mask that depends on floating-point numbers there is nothing to say."""
        if mask.value is not None and mask.value.atoms:
            self.launch.choices.append(Choice(mask.value, mask.lanes, self._place))

    def _cast(self, value: Any, dtype: Any, **_: Any) -> Any:
        kind = dtype.name if isinstance(dtype, Kind) else ""
        if isinstance(value, Pointers):
            return value
        if kind in FLOATS:
            found = self._floats(value, kind)
            return Floats(found.shape, kind, None, found.known)
        if kind == "int1":
            return as_bools(value)
        if isinstance(value, Floats):
            return Ints(value.shape, None, nowhere(value.shape))
        return as_ints(value)

    def full(self, shape: Any, value: Any, dtype: Any) -> Tile:
        sizes = listed(shape)
        if not all(isinstance(size, int) for size in sizes):
            raise Unreadable("the shape of a tile depends on what is computed")
        kind = dtype.name if isinstance(dtype, Kind) else "float32"
        tile = self._floats(value, kind) if kind in FLOATS else as_ints(value)
        return stretched(tile, sizes)

    def zeros(self, shape: Any, dtype: Any = None) -> Tile:
        return self.full(shape, 0, dtype or Kind("float32"))

    # --- blocks and memory

    def program_id(self, axis: Any, **_: Any) -> Ints:
        return scalar(self.launch.blocks[int(axis)])

    def num_programs(self, axis: Any, **_: Any) -> Ints:
        return scalar(self.launch.grid[int(axis)])

    def nothing(self, *_: Any, **__: Any) -> Nothing:
        return Nothing()

    def load(
        self, pointer: Any, mask: Any = None, other: Any = None, cache_modifier: Any = "", eviction_policy: Any = "",
        volatile: Any = False,
    ) -> Tile:  # fmt: skip
        shape = self._access("reads", pointer, mask, ())
        kind = pointer.memory.kind
        if pointer.memory.says_rows:
            name = self.atoms.made(f"number of {pointer.memory.name}", "read", (), least=-1)
            return Ints(shape, atom(name), self.launch.accesses[-1].lanes)
        if kind in (*FLOATS, *RAW):
            return Floats(shape, kind, None)
        none = nowhere(shape)
        return Bools(shape, None, none) if kind == "int1" else Ints(shape, None, none)

    def store(
        self, pointer: Any, value: Any, mask: Any = None, cache_modifier: Any = "", eviction_policy: Any = ""
    ) -> None:
        tile = value if isinstance(value, Floats | Ints | Bools) else self._floats(value)
        self._access("writes", pointer, mask, tile.shape)

    def _wait(self) -> None:
        """Where every block comes by, whatever the sizes are."""
        if not self._loops and not self._ways:
            self._waiting.wait()

    def _access(self, what: Any, pointer: Any, mask: Any, value: tuple[int, ...]) -> tuple[int, ...]:
        if not isinstance(pointer, Pointers):
            raise Wrong("type", "what is read or written is no pointer")
        memory = pointer.memory
        if what == "writes":
            self._waiting.check_write(memory.name)
        else:
            self._waiting.check_read(memory.name, is_given=memory.given)
        where = as_bools(True if mask is None else mask)
        shape, lanes = together(pointer.offsets, where)
        if common(shape, value) != shape:
            wide = stretched(Bools(shape, TRUE, lanes), common(shape, value))
            assert isinstance(wide, Bools)
            shape, lanes = wide.shape, wide.lanes
        if pointer.offsets.value is None:
            raise Unreadable(f"an address in {memory.name} depends on what is computed")
        if where.value is None:
            raise Unreadable(f"a mask for {memory.name} depends on what is computed")
        axes = self.launch.axes.get(memory.name, memory.axes)
        offset: Poly = pointer.offsets.value
        self.launch.accesses.append(Access(what, memory, axes, offset, shape, lanes, where.value, self._place))
        return shape


_OWN = {
    "tl.load": "load",
    "tl.store": "store",
    "tl.program_id": "program_id",
    "tl.num_programs": "num_programs",
    "tl.debug_barrier": "nothing",
    "tl.assume": "nothing",
    "tl.arange": "arange",
    "tl.where": "where",
    "tl.maximum": "maximum",
    "tl.minimum": "minimum",
    "tl.cdiv": "cdiv",
    "triton.cdiv": "cdiv",
    "tl.full": "full",
    "tl.zeros": "zeros",
    "tl.cast": "_cast",
}
