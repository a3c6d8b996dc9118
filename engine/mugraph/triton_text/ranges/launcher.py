"""The language of launchers, with unknown sizes. Which statements run depends on the sizes, so each way through a
launcher is read by itself, under the conditions that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mugraph.ir.tensors import Tensor
from mugraph.triton_text.hosts import host_builtin
from mugraph.triton_text.language import is_host
from mugraph.triton_text.launcher import OPTIONS, TYPES
from mugraph.triton_text.python import Evaluator
from mugraph.triton_text.ranges.accesses import Launch
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.formulas import FALSE, TRUE, Formula, opposite
from mugraph.triton_text.ranges.kernel import KernelReading
from mugraph.triton_text.ranges.layouts import Sizes, dense, layout, shape_of
from mugraph.triton_text.ranges.poly import ONE, Poly, product
from mugraph.triton_text.ranges.values import Along, Bools, Ints, Memory, Pointers, as_ints, scalar
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.source import Function, Named, listed
from mugraph.triton_text.tensor_methods import Device
from mugraph.triton_text.tiles import Kind
from mugraph.triton_text.waits import Stream

Declared = Mapping[str, Mapping[str, Tensor]]
"""Kernel -> its parameter -> the tensor that it is for."""


@dataclass(frozen=True)
class HostTensor:
    """turned: its dimensions are in another order than in memory"""

    memory: Memory
    shape: tuple[Poly, ...]
    turned: bool = False


@dataclass(frozen=True)
class Method:
    owner: HostTensor
    name: str


@dataclass(frozen=True)
class Launcher:
    function: Function
    grid: tuple[Any, ...]


class Ways:
    """Which way is taken at each question, and which are left to be taken. possible: may all of these hold?"""

    def __init__(self, possible: Callable[[Sequence[Formula]], bool]) -> None:
        self._possible = possible
        self._chosen: list[bool] = []
        self._left: list[list[bool]] = [[]]
        self.known: list[Formula] = []

    def another(self) -> bool:
        """Begin with a way that was not taken yet. False without any."""
        if not self._left:
            return False
        self._chosen, self.known = self._left.pop(), []
        return True

    def taken(self, question: Formula) -> bool:
        if question in (TRUE, FALSE):
            return question == TRUE
        at = len(self.known)
        if at == len(self._chosen):
            ways = [holds for holds in (True, False) if self._possible([*self.known, _with(question, holds)])]
            self._left += [[*self._chosen, holds] for holds in ways[1:]]
            self._chosen.append(ways[0] if ways else True)
        self.known.append(_with(question, self._chosen[at]))
        return self._chosen[at]


def _with(question: Formula, holds: bool) -> Formula:
    return question if holds else opposite(question)


class LauncherReading:
    """One way through a launcher.

    sizes: of all axes, but for those that the launcher chooses itself, as how many parts there are: these are what it
    allocates for the first tensor that has them, and all claims are about that
    """

    def __init__(self, atoms: Atoms, ways: Ways, sizes: Sizes, declared: Declared) -> None:
        self.atoms, self.ways, self._sizes, self._declared = atoms, ways, dict(sizes), declared
        self.evaluator = Evaluator(self)
        self.launches: list[Launch] = []
        self.allocated: list[Memory] = []
        self._steps = 0
        self._stream = Stream()

    # --- Language

    def binary(self, op: str, a: Any, b: Any) -> Any:
        if op in ("==", "!=") and not (isinstance(a, Ints) or isinstance(b, Ints)):
            return (a == b) == (op == "==")
        return KernelReading(_NOWHERE, self.atoms).binary(op, a, b)

    def unary(self, op: str, a: Any) -> Any:
        return KernelReading(_NOWHERE, self.atoms).unary(op, a)

    def attribute(self, owner: Any, name: str) -> Any:
        match owner, name:
            case Named(full), _:
                last = full.rsplit(".", 1)[-1]
                return Kind(TYPES[last]) if full.startswith(("torch.", "tl.")) and last in TYPES else owner
            case HostTensor(), "shape":
                return tuple(_plain(n) for n in owner.shape)
            case HostTensor(), "dtype":
                return Kind(owner.memory.kind)
            case HostTensor(), "device":
                return Device()
            case HostTensor(), "ndim":
                return len(owner.shape)
            case HostTensor(), "T" | "mT" if len(owner.shape) == 2:
                return HostTensor(owner.memory, owner.shape[::-1], not owner.turned)
            case HostTensor(), _:
                return Method(owner, name)
            case _:
                raise Unreadable(f"{name} of {type(owner).__name__} is not read")

    def subscript(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, Function):
            return Launcher(owner, listed(key))
        raise Unreadable(f"an element of {type(owner).__name__} is taken")

    def truth(self, value: Any) -> bool:
        if isinstance(value, Bools) and value.value is not None:
            return self.ways.taken(value.value)
        if isinstance(value, Ints | Bools | HostTensor):
            raise Unreadable("what is done depends on what is computed")
        return True

    def loop(self, iterable: Any) -> Iterable[Any]:
        raise Unreadable("a loop in a launcher is not read where sizes vary")

    def call(self, function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match function:
            case Launcher():
                self._launch(function, arguments, named)
                return None
            case Method(owner, name):
                return _method(owner, name, arguments)
            case Named(name):
                return self._named(name, arguments, named)
            case _:
                raise Unreadable(f"a call of {type(function).__name__} is not read")

    def _named(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match name:
            case "builtins.dict":
                return dict(named)
            case "builtins.min" | "builtins.max" if not all(is_host(one) for one in arguments):
                found = as_ints(arguments[0])
                for other in arguments[1:]:
                    larger = self.atoms.larger if name == "builtins.max" else self.atoms.smaller
                    found = scalar(larger(_known(found), _known(as_ints(other))))
                return found
            case _ if name.startswith("builtins.") and all(is_host(one) for one in arguments):
                return host_builtin(name.removeprefix("builtins."), arguments)
            case "triton.cdiv":
                return _plain_ints(KernelReading(_NOWHERE, self.atoms).cdiv(*arguments))
            case "torch.empty":
                size = listed(arguments[0]) if len(arguments) == 1 else tuple(arguments)
                return self._made(size, named.get("dtype"))
            case "torch.mm" | "torch.bmm" | "torch.matmul":
                left, right = arguments[0].shape, arguments[1].shape
                return self._computed(name, arguments[:2], (*left[:-1], right[-1]), left[-1] == right[-2], named)
            case "torch.addmm" if len(arguments) == 3 and not named.keys() - {"out"}:
                bias, left, right = (one.shape for one in arguments)
                fits = left[-1] == right[-2] and bias == (right[-1],)
                return self._computed(name, arguments, (*left[:-1], right[-1]), fits, named)
            case "torch.softmax" if arguments[1:] == (-1,) or arguments[1:] == [-1]:
                return self._computed(name, arguments[:1], arguments[0].shape, True, named)
            case "torch.nn.functional.linear":
                x, weight = arguments[0].shape, arguments[1].shape
                return self._computed(name, arguments, (*x[:-1], weight[0]), x[-1] == weight[1], named)
            case _:
                raise Unreadable(f"{name} is not read where sizes vary")

    # --- tensors

    def _made(self, size: Sequence[Any], dtype: Any) -> HostTensor:
        shape = tuple(_known(as_ints(one)) for one in size)
        kind = dtype.name if isinstance(dtype, Kind) else "float32"
        axes = tuple(Along(f"dimension {at}", *one) for at, one in enumerate(zip(shape, dense(shape), strict=True)))
        memory = Memory(f"tensor {len(self.allocated)} of the launcher", kind, shape, axes, False, self.evaluator.line)
        self.allocated.append(memory)
        return HostTensor(memory, shape)

    def _computed(
        self, name: str, operands: Sequence[Any], shape: tuple[Poly, ...], fits: bool, named: Mapping[str, Any]
    ) -> HostTensor:
        """A call of a library reads its operands and writes the whole of its result."""
        self._steps += 1
        self._stream.other()
        if not fits or not all(isinstance(one, HostTensor) for one in operands):
            raise Wrong("type", f"{name} is called with tensors that do not fit together", self.evaluator.line)
        out = named.get("out")
        if out is None:
            out = self._made([scalar(n) for n in shape], Kind(operands[0].memory.kind))
        if not isinstance(out, HostTensor) or out.shape != shape or out.turned:
            raise Wrong("type", f"{name} has a result of another shape than what it is written to")
        for one in operands:
            self._check_written(one.memory)
        out.memory.written.append(self._steps)
        return out

    # --- launches

    def _launch(self, launcher: Launcher, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        self._steps += 1
        function, line = launcher.function, self.evaluator.line
        if not function.is_jit or any(name != "triton.jit" for name, _ in function.decorators):
            raise Unreadable(f"the decorators of {function.name} are not read where sizes vary")
        own = {name: value for name, value in named.items() if name not in OPTIONS}
        bound = self.evaluator.bound(function, arguments, own)
        x, y, z = (_known(as_ints(one)) for one in (*launcher.grid, 1, 1, 1)[:3])
        words = ("x", "y", "z")
        blocks = [
            self.atoms.below(f"program_id {word}", "block", size) for word, size in zip(words, (x, y, z), strict=True)
        ]
        declared = self._declared.get(function.name, {})
        axes: dict[str, tuple[Along, ...]] = {}
        given: dict[str, Any] = {}
        for name, value in bound.items():
            if isinstance(value, HostTensor):
                if value.turned:
                    raise Unreadable("a view is given to a kernel")
                if name in declared:
                    axes[value.memory.name] = self._declare(value, declared[name], function.name)
                given[name] = Pointers(value.memory, scalar(0))
            else:
                given[name] = value
        launch = Launch(function.name, (x, y, z), (blocks[0], blocks[1], blocks[2]), axes)
        launch.start = self._stream.start_of(named)
        KernelReading(launch, self.atoms).execute(function, given, line)
        for access in launch.accesses:
            if access.what == "reads":
                self._check_written(access.memory)
        for access in launch.accesses:
            if access.what == "writes" and self._steps not in access.memory.written:
                access.memory.written.append(self._steps)
        for memory in {access.memory for access in launch.accesses if access.what == "writes"}:
            if memory.given or len(memory.written) > 1:
                raise Wrong("order", f"{function.name} writes to {memory.name}, which is not its own", line)
            if any(access.memory is memory and access.what == "reads" for access in launch.accesses):
                raise Unreadable(f"{function.name} reads what it writes", line)
        self.launches.append(launch)

    def _declare(self, value: HostTensor, tensor: Tensor, kernel: str) -> tuple[Along, ...]:
        """The axes of a tensor, as a kernel takes it."""
        memory = value.memory
        if memory.given:
            return memory.axes
        if len(tensor.dims) == len(memory.shape):
            for dim, extent in zip(tensor.dims, memory.shape, strict=True):
                if len(dim) == 1:
                    self._sizes.setdefault(dim[0], extent)
        if shape_of(tensor, {}, self._sizes) != memory.shape:
            raise Wrong("type", f"{kernel} takes a tensor of other shape for {tensor.name}", self.evaluator.line)
        memory.name = tensor.name
        return layout(tensor.dims, memory.shape, dense(memory.shape), self._sizes)

    def _check_written(self, memory: Memory) -> None:
        if not memory.given and not memory.written:
            raise Wrong("unwritten", f"{memory.name} is read before it is written", self.evaluator.line)


_NOWHERE = Launch("", (ONE, ONE, ONE), (ONE, ONE, ONE), {})


def _known(value: Ints) -> Poly:
    if value.value is None:
        raise Unreadable("a size depends on what is computed")
    return value.value


def _plain(size: Poly) -> Any:
    known = size.constant
    return scalar(size) if known is None else known


def _plain_ints(value: Any) -> Any:
    return _plain(_known(value)) if isinstance(value, Ints) else value


def _method(owner: HostTensor, name: str, arguments: Sequence[Any]) -> Any:
    match name:
        case "numel" | "nelement":
            return _plain(product(owner.shape))
        case "size":
            shape = tuple(_plain(n) for n in owner.shape)
            return shape[int(arguments[0])] if arguments else shape
        case "dim":
            return len(owner.shape)
        case "t" if len(owner.shape) == 2:
            return HostTensor(owner.memory, owner.shape[::-1], not owner.turned)
        case _:
            raise Unreadable(f"the method {name} of a tensor is not read where sizes vary")
