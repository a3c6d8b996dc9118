"""The hooks that instrumented code calls. They fill the tape, with the exact place of every event in every user
function."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MethodType, ModuleType
from typing import cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.callables import Judge
from mugraph.trace.pytorch.kernel_modules import takes_no_call
from mugraph.trace.run.asked_devices import AskedDevices
from mugraph.trace.run.frames import frame_of_caller, keywords_of
from mugraph.trace.run.gpu_answers import ANSWERS
from mugraph.trace.run.module_calls import module_calls
from mugraph.trace.run.other_memory import told_of_memory
from mugraph.trace.run.tape import STATEMENT, Compared, Happening, Loaded, Made, ModuleCalled, Record, Step, Tape, Was
from mugraph.trace.run.tape_writer import TapeWriter
from mugraph.trace.run.torch_calls import TorchCalls
from mugraph.trace.run.values import Values
from mugraph.trace.run.varying import Varying, compared, computed, decide, varying_in
from mugraph.trace.run.varying_calls import of_numbers
from mugraph.trace.syntax.operators import BINARY, INPLACE, UNARY

_MAPPING_GET = cast("Callable[..., object]", vars(Mapping)["get"])


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a statement; to_replace: as in `Happening`."""

    text: str
    to_replace: bool = False


class Recorder:
    """Is the module-level name `__mugraph__` of instrumented code. Outside `recording` its hooks only pass through."""

    slice = slice  # what the index a:b becomes

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.statements: dict[int, Problem] = {}  # what is wrong with a statement, by node
        self.answers_for_run = False  # whether the program is told that its tensors have numbers
        self.was_asked = False  # whether it has asked
        self.before: Callable[[object], None] = lambda _: None  # is told what is about to be called
        self.begun = 0  # steps, in all functions of a run
        self._writer = TapeWriter()
        self._calls = TorchCalls(self._writer, judge, hooks=__name__)
        self._devices = AskedDevices(self._writer, judge)

    # -- life

    @property
    def tape(self) -> Tape:
        return self._writer.tape

    @property
    def values(self) -> Values:
        return self._writer.values

    def begin(self, keep_copies: bool) -> None:
        """Begins a new tape. keep_copies: of the numbers of tensors"""
        self.begun = 0
        self._writer.begin(keep_copies)

    @contextmanager
    def recording(self, without_gradients: bool = False) -> Generator[None]:
        """The program runs within this context. without_gradients: it is known that it records none"""
        self._writer.active = True
        grad_mode = self._calls.grad_mode
        grad_mode.begin(without_gradients)
        try:
            with (
                grad_mode.without_inference(partial(self._mode, "torch.inference_mode")),
                module_calls(self._module),
                self._calls,
                told_of_memory(self._calls.called),
                self._calls.autocast.noticed(partial(self._mode, "torch.autocast")),
            ):
                yield
        finally:
            self._writer.active = False
            while self._writer.stack:
                self._writer.close({})

    def _module(self, module: torch.nn.Module) -> None:
        if self._writer.watching:
            self.before(module)
            self._writer.add(ModuleCalled(self._writer.site(), module))
            if (problem := self.judge.module_problem(module)) is not None:
                self._writer.add(Happening(self._writer.site(), type(module).__qualname__, problem))

    def _mode(self, name: str, problem: str) -> None:
        if self._writer.watching:
            self._writer.add(Happening(self._writer.site(), name, problem))

    # -- hooks: functions and statements

    def enter(self, node: int) -> None:
        if self._writer.active:
            frame = frame_of_caller(1)
            self._writer.open(node, frame.f_globals)
            if (rest := keywords_of(frame)) is not None:
                self._writer.add(Made(self._writer.site(), node, rest))

    def leave(self, node: int) -> None:
        if self._writer.watching and self._writer.stack[-1].node == node:
            self._writer.close(dict(frame_of_caller(1).f_locals))

    def step(self, node: int) -> None:
        if self._writer.watching:
            activation = self._writer.stack[-1]
            activation.nodes.clear()  # an exception may have cut calls short
            self.begun += 1
            names = dict(frame_of_caller(1).f_locals)
            activation.steps.append(Step(node, len(self._writer.tape.events), names, self.begun))
            problem = self.statements.get(node)
            if problem is not None:
                found = Happening(self._writer.site(), STATEMENT, problem.text, to_replace=problem.to_replace)
                self._writer.add(found)

    def ended(self, node: int) -> None:
        """The statements of a `with` have ended, and its contexts are about to."""
        if self._writer.watching:
            activation = self._writer.stack[-1]
            begun = [at for at, step in enumerate(activation.steps) if step.node == node]
            if begun:
                last = len(activation.steps) - 1
                activation.ended.setdefault(last, []).append((begun[-1], len(self._writer.tape.events)))

    def returned(self, node: int, value: object) -> object:
        if self._writer.watching:
            self._writer.stack[-1].returned[len(self._writer.stack[-1].steps) - 1] = value
        return value

    # -- hooks: expressions

    def _evaluate(self, node: int, compute: Callable[[], object]) -> object:
        activation = self._writer.stack[-1]
        depth, step = len(activation.nodes), len(activation.steps) - 1
        activation.nodes.append(node)
        value = compute()
        del activation.nodes[depth:]
        if isinstance(value, torch.Tensor):
            activation.results[(step, node)] = self._writer.values.number(value)
        return value

    def call(self, node: int, function: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        if not self._writer.watching:
            result = function(*args, **kwargs)
            return self._devices.called(function, args, result) if ANSWERS.gpu and function is getattr else result

        if self.answers_for_run and function is isinstance and len(args) == 2 and args[1] is FakeTensor:
            self.was_asked = True
            return False
        if function is takes_no_call:
            return self._evaluate(node, takes_no_call)
        if attribute_of(function, "__func__") is _MAPPING_GET:
            return self._evaluate(
                node, lambda: self._item(node, cast("MethodType", function).__self__, *args, **kwargs)
            )

        def compute() -> object:
            self.before(function)
            given, named = self._devices.given(function, args, kwargs)
            before = len(self._writer.tape.events)
            site = self._writer.site()
            was = Was.of(attribute_of(function, "__self__"))
            varies = next(varying_in((args, kwargs)), None) is not None
            result = of_numbers(self.judge, function, given, named) if varies else function(*given, **named)
            if function is getattr and len(args) >= 2 and not isinstance(args[0], torch.Tensor):
                self._writer.add(Loaded(site, node, args[0], str(args[1]), result))
            after = self._writer.tape.events[before : before + 64]
            recorded = [event.target for event in after if isinstance(event, Record)]
            if (module := self.judge.module_of(function)) is not None and recorded:
                self._writer.add(ModuleCalled(site, module, function.__name__))
            verdict = self.judge.call(function, recorded)
            if verdict is not None:
                self._writer.add(Happening(site, verdict.name, verdict.problem, verdict.mutates, before=was))
            return self._devices.called(function, args, result)

        return self._evaluate(node, compute)

    def _item(self, node: int, base: object, key: object, default: object = None) -> object:
        """What `Mapping.get` does, for mappings that are written in Python: `[]` of them is code that is recorded."""
        try:
            return self.subscript(node, base, key)
        except KeyError:
            return default

    def binary(self, node: int, name: str, left: object, right: object) -> object:
        if not self._writer.watching:
            return BINARY[name](left, right)
        self._devices.computed(left, right)
        return self._operator(node, name, left, right)

    def _operator(self, node: int, name: str, left: object, right: object) -> object:
        return self._evaluate(node, lambda: computed(name, BINARY[name], (left, right)))

    def compare(self, node: int, name: str, left: object, right: object) -> object:
        if not self._writer.watching:
            return BINARY[name](left, right)
        if (result := compared(name, BINARY[name], left, right)) is not None:
            self._writer.add(Compared(self._writer.site(), name, left, right, result))
            return result
        self._devices.compared(left, right)
        decide(right, beside=left)
        decide(left, beside=right)
        return self._operator(node, name, left, right)

    def chain(self, node: int, names: str, left: object, right: object, *more: Callable[[], object]) -> object:
        """`left < right < more`. An operand after the second one is evaluated where those before it compare so."""
        first, *others = names.split()
        result = self.compare(node, first, left, right)
        for name, later in zip(others, more, strict=True):
            if not result:
                break
            left, right = right, later()
            result = self.compare(node, name, left, right)
        return result

    def compared(self, _: int, value: object) -> object:
        """An operand of a comparison that no hook makes: one of several, or with what is in something."""
        if self._writer.watching:
            decide(value)
        return value

    def inplace(self, node: int, name: str, left: object, right: object) -> object:
        if not self._writer.watching:
            return INPLACE[name](left, right)
        if type(left) in (list, dict, set):
            self._writer.add(Happening(self._writer.site(), "augmented assignment", None, id(left)))
        self._devices.computed(left, right)
        return self._evaluate(node, lambda: computed(name, INPLACE[name], (left, right)))

    def unary(self, node: int, name: str, operand: object) -> object:
        if not self._writer.watching:
            return UNARY[name](operand)
        return self._evaluate(node, lambda: UNARY[name](operand))

    def attribute(self, node: int, base: object, name: str) -> object:
        if (where := self._devices.where(base, name)) is not None:
            if self._writer.watching:
                self._writer.add(Loaded(self._writer.site(), node, base, name, where))
            return where
        if not self._writer.watching:
            return self._devices.read(base, name, getattr(base, name)) if ANSWERS.gpu else getattr(base, name)
        if isinstance(base, ModuleType) and not self.judge.may_be_watched(base):
            return getattr(base, name)
        if isinstance(base, Varying):
            base.decide()
        value = self._evaluate(node, lambda: getattr(base, name))
        value = self._devices.read(base, name, value)
        if not isinstance(base, torch.Tensor) or isinstance(value, torch.device):
            self._writer.add(Loaded(self._writer.site(), node, base, name, value))
        return value

    def subscript(self, node: int, base: object, index: object) -> object:
        typed = cast(Mapping[object, object], base)
        if not self._writer.watching:
            return typed[index]
        self.before(getattr(type(base), "__getitem__", None))
        decide(index, beside=base)
        value = self._evaluate(node, lambda: typed[index])
        if not isinstance(base, torch.Tensor):
            name = f"[{index!r}]" if isinstance(index, int | str) else "[]"
            self._writer.add(Loaded(self._writer.site(), node, base, name, value))
        return value

    def store(self, node: int, value: object, base: object, index: object) -> None:
        """`base[index] = value`. Tensors record it themselves."""
        if self._writer.watching and not isinstance(base, torch.Tensor):
            plain = type(base) in (list, dict)
            problem = None if plain else "stores to an attribute or item"
            mutates = id(base) if plain else None
            self._writer.add(Happening(self._writer.site(), STATEMENT, problem, mutates, before=Was.of(base)))
        typed = cast("MutableMapping[object, object]", base)
        if not self._writer.watching:
            typed[index] = value
            return
        decide(index, beside=base)

        def write() -> None:
            typed[index] = value

        self._evaluate(node, write)

    def made(self, node: int, value: object) -> object:
        if self._writer.watching:
            self._writer.add(Made(self._writer.site(), node, value))
        return value
