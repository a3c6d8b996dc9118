"""A launcher that has been surveyed: all that its blocks read and write is known, and some of them can be run.

It is evaluated at the program's own sizes: its grids, strides, masks, loops and splits are the real ones. Blocks are
run over the finite fields with all that feeds them, and compared with the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import NARROW, READ, STORED, WRITTEN, largest
from mugraph.ir.program import TensorProgram
from mugraph.ops.algebra.bounds import ANYWHERE, Ends, EndsArithmetic
from mugraph.ops.functions.by_erf import BY_ERF
from mugraph.ops.functions.by_sign import BY_SIGN, MAX, taken_by_sign
from mugraph.ops.functions.through_exp import CONSTANTS, SIGMOID
from mugraph.triton_text.bits import Bits, NotSame
from mugraph.triton_text.calls import Call
from mugraph.triton_text.inputs import Inputs
from mugraph.triton_text.launcher import LauncherRun
from mugraph.triton_text.memory import Layer, Memory
from mugraph.triton_text.reals import FINITE, Real, Reals
from mugraph.triton_text.reference import Reference
from mugraph.triton_text.refusals import Refused, Unreadable, Wrong
from mugraph.triton_text.running import Launch, World
from mugraph.triton_text.source import listed, read_module
from mugraph.triton_text.tensors import HostTensor, dense, extent_of, same_places
from mugraph.verification.field import FieldArithmetic
from mugraph.verification.index_numbers import Numbers

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""A shape and strides."""
_WHOLE = 4e6
"""Elements computed, up to which all blocks are run."""
_MUCH = 1 << 23
"""Elements of inputs that go into one block, above which only one is run: as for a layer with all its weights."""
_RANDOM = 2
"""Blocks besides the first and the last."""
_COPIED = 8
"""Elements of an output, by which one that is only copied is known."""
_CLAMPED = 20
"""Further seeds where it is used that conversions clamp."""
_DRAWS = 4
"""Seeds that divide by zero are replaced by others, so often."""


@dataclass(frozen=True)
class Way:
    """
    by_form: functions that are computed by what they are made of (verification/field.py)
    asks_empty: as of World
    clamps:  that a GPU's conversion to eight bits clamps is used; else it is taken for one of what is within the type,
             which is enough where that is what the program converts
    """

    by_form: frozenset[str]
    asks_empty: bool = True
    clamps: bool = True


class Surveyed:
    """A launcher, at the sizes of a program. Raises Unreadable and Wrong."""

    def __init__(
        self,
        program: TensorProgram,
        text: str,
        launcher: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        rng: np.random.Generator,
        configuration: int,
        other: Mapping[str, object],
        shapes: Mapping[str, Layout],
        most: float = inf,
        indices: Mapping[str, Numbers] | None = None,
    ) -> None:
        """most: as of World. indices: what those hold by which rows are looked up"""
        module = read_module(text)
        if launcher not in module.functions:
            raise Unreadable(f"the text has no function {launcher}")
        self._program, self.rng, self._text = program, rng, text
        self.reference = Reference(program, indices or {})
        self._shapes = shapes
        world = _no_world()
        world.most, world.takes_tf32 = most, _may_take_tf32(program)
        self.run = LauncherRun(world, configuration)
        self.world = world
        given = [self._input(name) for name in inputs]
        result = self.run.evaluator.run(module.functions[launcher], given, other)
        found = listed(result)
        if len(found) != len(outputs):
            raise Wrong("type", f"the launcher returns {len(found)} tensors, not {len(outputs)}")
        self.outputs = dict(zip(outputs, found, strict=True))
        for name, tensor in self.outputs.items():
            self._check_output(name, tensor)
        results = {tensor.memory for tensor in self.outputs.values()}
        for memory in world.whole - results:  # of a result the program says that its numbers are whole
            raise Unreadable(f"numbers that may not be whole are stored to {memory.name}")
        self.without = self._without_kernels()
        for tensor in given:
            if tensor.memory.layers:
                raise Wrong("order", f"it writes to its input {tensor.memory.name}", tensor.memory.layers[0].line)

    @property
    def configurations(self) -> int:
        return self.run.configurations

    @property
    def launches(self) -> list[Launch]:
        return self.run.launches

    @property
    def blocks(self) -> int:
        return sum(launch.blocks for launch in self.launches)

    @property
    def adds(self) -> bool:
        """Do blocks add to what is in memory, in any order?"""
        return any(layer.adds for memory in self.run.allocated for layer in memory.layers)

    def count_run(self) -> int:
        return sum(launch.count for launch in self.launches)

    def _input(self, name: str) -> HostTensor:
        tensor = self._program.tensor(name)
        shape, strides = self._layout(name)
        data = self.reference.indices.get(name)
        size, source = self.reference.extent(tensor), self.reference.numbers.get(name, 0)
        if extent_of(shape, strides) != size:
            raise Unreadable(f"{name} has another place in memory than the program says")
        memory = Memory(name, size, READ[tensor.dtype].torch, shape, strides, source=source, data=data)
        return HostTensor(memory, shape, strides)

    def _layout(self, name: str) -> Layout:
        tensor = self._program.tensor(name)
        shape = tensor.memory_shape(self._program.sizes)
        found = self._shapes.get(name, (shape, tensor.strides))
        return found if prod(found[0]) == prod(shape) else (shape, tensor.strides)

    def _check_output(self, name: str, result: object) -> None:
        tensor = self._program.tensor(name)
        shape, _ = self._layout(name)
        if not isinstance(result, HostTensor):
            raise Wrong("type", f"{name}, which the launcher returns, is no tensor")
        kind = WRITTEN[tensor.dtype].torch
        if result.shape != shape or result.memory.kind != kind:
            raise Wrong("type", f"{name} has shape {list(result.shape)} and type {result.memory.kind}")
        if not same_places(shape, result.strides, dense(shape)) or result.offset or result.memory.source is not None:
            raise Unreadable(f"{name} is no tensor of its own that lies row by row")
        result.memory.name = name
        left = result.memory.unwritten(len(self.world.steps)) if result.memory.fill is None else None
        if left is not None:
            raise Wrong("unwritten", f"{result.memory.element(left)} is never written")

    def _without_kernels(self) -> str:
        if not self.launches:
            return "it launches no kernel"
        for name, tensor in self.outputs.items():
            layer = tensor.memory.layers[-1] if tensor.memory.layers else None
            if layer is None:
                return f"{name} is {tensor.memory.fill:g} everywhere, and no kernel writes it"
            call = next((one for one in self._calls if one.number == layer.step), None)
            if call is not None:
                return f"{name} is computed by {call.function}, and by no kernel"
        return ""

    @property
    def _calls(self) -> list[Call]:
        """Of PyTorch's functions, in the launcher."""
        steps: list[object] = [*self.world.steps]
        return [step for step in steps if isinstance(step, Call)]

    def _only_copied(self, name: str, reals: Reals) -> None:
        """Is an output what a single call of PyTorch's has computed?"""
        memory = self.outputs[name].memory
        for step in self._calls:
            if prod(step.out.shape) == memory.size and not self.without:
                places = step.out.places().reshape(-1)
                # One at a time: the reference computes all that lies between the elements that it is asked for.
                at = np.unique(self.rng.integers(0, memory.size, _COPIED)).reshape(-1, 1)
                if not any(self._is_another(name, step, one, places[one], reals) for one in at):
                    self.without = f"{step.function} computes all of {name}, which a kernel only copies"

    def _is_another(self, name: str, step: Call, at: NDArray[np.int64], place: NDArray[np.int64], reals: Reals) -> bool:
        """Is what a call has computed, at a place of its result, not what an output has there?"""
        ours = self.world.read(step.out.memory, place, step.number + 1)
        return bool(_differs(ours, self.reference.values(name, at, self.world.inputs, reals)).any())

    # --- over the fields

    def compare(self) -> Way:
        """What has to be known of functions. Raises Wrong."""
        ways = self._ways()
        rejected: Wrong | None = None
        if self._clamps_all_codes():
            ways = [*(replace(way, clamps=False) for way in ways), *ways]
        for way in ways:
            rejected = self.drawn(way)
            # An order of three numbers, of which one is the type's largest, is drawn half of the time.
            for _ in range(_CLAMPED if rejected is None and self.world.reals.has_clamped else 0):
                rejected = rejected or self.drawn(way)
            if rejected is None:
                return way
        for way in ways if self.world.asked_empty else ():
            if self.drawn(unasked := replace(way, asks_empty=False)) is None:
                return unasked
        assert rejected is not None
        raise rejected

    def compare_bits(self, bits: Bits) -> None:
        """Raises Refused."""
        if self.adds:
            raise NotSame("blocks add to its elements in any order")
        self.begin(bits)
        self._tested(bits)

    def _ways(self) -> list[Way]:
        """The cheapest first: signs take long to find out, and as a rule nothing depends on them."""
        ops = self._program.ops
        erf = BY_ERF if any(op.fn in BY_ERF for op in ops) else frozenset[str]()
        forms = frozenset(CONSTANTS) - {SIGMOID} | erf
        signs = taken_by_sign(ops)
        first = [Way(forms | signs)] if signs & BY_SIGN else [Way(forms), Way(forms | signs)]
        ways = [*first, Way(forms | {SIGMOID} | signs), Way(forms | {SIGMOID, MAX} | BY_SIGN | BY_ERF)]
        return list(dict.fromkeys(ways))

    def _clamps_all_codes(self) -> bool:
        """Does the program clamp whatever it converts to eight bits?"""
        ends: dict[str, Ends] = {}
        for op in self._program.ops:
            given = [ends[name] for name in op.inputs]
            if op.kind.stored and max(-given[0][0], given[0][1]) > largest(op.kind.stored):
                return False
            is_known = op.kind.is_elementwise or op.kind.is_number
            found: Ends = op.kind.meaning(EndsArithmetic(), given, op.fn, op.over) if given and is_known else ANYWHERE
            ends[op.name] = (op.value, op.value) if op.kind.is_number else found
        return any(op.kind.stored for op in self._program.ops)

    def signed(self, way: Way) -> bool:
        """Do signs matter? Then a positive constant is a fourth power of what is drawn for it."""
        takes_roots = any("sqrt" in op.kind.primitives for op in self._program.ops) or "sqrt" in self._text
        return takes_roots or MAX in way.by_form

    def drawn(self, way: Way) -> Wrong | None:
        primitives = {primitive for op in self._program.ops for primitive in op.kind.primitives}
        with_q = SIGMOID in way.by_form or "exp" in primitives or "exp" in self._text
        self.world.asks_empty = way.asks_empty
        last = Wrong("values", "it divides by zero at random inputs, again and again")
        for _ in range(_DRAWS):
            reals = Reals(FieldArithmetic(self.rng, 1, with_q, way.by_form, self.signed(way)))
            reals.clamps = way.clamps
            self.begin(reals)
            try:
                self._tested(reals)
            except Wrong as error:
                if error.check == "values" or not reals.field.valid.all():
                    last = error if reals.field.valid.all() else last
                    continue
                return error
            except Refused:
                raise
            if reals.field.valid.all():
                return None
        return last

    def begin(self, reals: Reals) -> None:
        """Nothing has been run."""
        world = self.world
        world.reals = reals
        world.inputs = Inputs(reals.field, self.rng, self.reference.count)
        world.begin()
        for launch in self.launches:
            launch.begin()
        for memory in self.run.allocated:
            for layer in memory.layers:
                layer.begin()

    def _tested(self, reals: Reals) -> None:
        samples = {name: self._affordable(name, tensor.memory, reals) for name, tensor in self.outputs.items()}
        together: dict[int, set[int]] = {}
        for layer, block in (one for sample in samples.values() for one in sample):
            together.setdefault(layer.step, set()).add(block)
        for step, blocks in together.items():
            self.world.steps[step].run(np.array(sorted(blocks)))
        for name, sample in samples.items():
            for layer, block in sample:
                self._compared(name, self.outputs[name].memory, layer, block, reals)
        if self.is_whole():
            for name, tensor in self.outputs.items():
                self._same(name, tensor.memory, every_place(tensor.memory.size), None, reals)
        for name in self.outputs:
            self._only_copied(name, reals)

    def is_whole(self) -> bool:
        """Are all blocks run, and all results compared? By what the blocks cost that were run."""
        ran = max(self.count_run(), 1)
        return self.world.elements / ran * self.blocks <= _WHOLE and self.reference.work <= _WHOLE

    def _affordable(self, name: str, memory: Memory, reals: Reals) -> list[tuple[Layer, int]]:
        """One of the blocks where much goes into each of them."""
        found = list(self._sample(memory))
        if not found:  # no step writes it: it is what it begins with
            self._same(name, memory, every_place(memory.size), None, reals)
            return []
        layer, block = found[-1]
        return found[-1:] if self.reference.taken(name, layer.owners.by(block)) > _MUCH else found

    def _sample(self, memory: Memory) -> Iterator[tuple[Layer, int]]:
        """The blocks that write the first, the last and random elements."""
        chosen = [0, memory.size - 1, *self.rng.integers(0, memory.size, _RANDOM).tolist()]
        seen: set[tuple[int, int]] = set()
        for element in chosen:
            layer, block = _writer(memory, element)
            if layer is None:
                continue
            if (layer.step, block) not in seen:
                seen.add((layer.step, block))
                yield layer, block

    def _compared(self, name: str, memory: Memory, layer: Layer, block: int, reals: Reals) -> None:
        at = layer.owners.by(block)
        self._same(name, memory, at, layer, reals)

    def _same(self, name: str, memory: Memory, at: NDArray[np.int64], layer: Layer | None, reals: Reals) -> None:
        ours = self.world.read(memory, at, len(self.world.steps))
        exact = self.reference.values(name, at, self.world.inputs, reals)
        wrong = _differs(ours, exact)
        if not wrong.any():
            return
        first = int(wrong.argmax())
        place = int(at[first])
        layer = _writer(memory, place)[0]
        state = FINITE if ours.state is None else int(ours.state[first])
        what = (
            "is not what the program computes"
            if state == FINITE
            else "is no number: of a division by zero, or of lanes that are loaded under a mask without `other`"
        )
        if layer is None:
            raise Wrong("fields", f"{memory.element(place)} {what}")
        step = self.world.steps[layer.step]
        by = f", written by {step.named(_writer(memory, place)[1])}" if isinstance(step, Launch) else ""
        count = f" ({int(wrong.sum())} of {wrong.size} elements)" if wrong.size > 1 else ""
        where = step.where(_writer(memory, place)[1], memory, place) if isinstance(step, Launch) else {}
        check = "values" if state != FINITE else "fields"
        raise Wrong(check, f"{memory.element(place)}{by}, {what}{count}", layer.line, where)


def _differs(a: Real, b: Real) -> NDArray[np.bool_]:
    wrong = a.p != b.p
    if a.q is not None and b.q is not None:
        wrong = wrong | (a.q != b.q)
    return wrong if a.state is None else wrong | (a.state != FINITE)


def _may_take_tf32(program: TensorProgram) -> bool:
    """Numbers of 16 bits or fewer fit tf32, and so does what is computed of them and would be rounded to them."""
    narrow = any(tensor.dtype in (*NARROW, *STORED) for tensor in program.tensors)
    return narrow or any(op.tf32 for op in program.ops)


def _no_world() -> World:
    """For the survey, which computes nothing."""
    reals = Reals(FieldArithmetic(np.random.default_rng(0), 1, with_q=False))
    return World(reals, Inputs(reals.field, np.random.default_rng(0), 1))


def every_place(size: int) -> NDArray[np.int64]:
    return np.arange(size, dtype=np.int64)


def _writer(memory: Memory, element: int) -> tuple[Layer | None, int]:
    """The last step that writes an element or adds to it, and the block that does."""
    at = np.array([element])
    for layer in reversed(memory.layers):
        if layer.adds:
            blocks = layer.owners.adding_to(at)
            if blocks.size:
                return layer, int(blocks[0])
        elif layer.owners.of(at)[0]:
            return layer, int(layer.owners.of(at)[0]) - 1
    return None, 0
