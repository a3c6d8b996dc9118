"""The language of launchers: tensors, the functions of PyTorch that make and view them, and launches."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.boxes import surveyed_in_one
from mugraph.triton_text.calls import CALLS, Call
from mugraph.triton_text.functions import cdiv, next_power_of_2
from mugraph.triton_text.handles import PointerKind, Range
from mugraph.triton_text.hosts import host_builtin, host_math, number_of
from mugraph.triton_text.ints import number
from mugraph.triton_text.kernels import Run
from mugraph.triton_text.language import is_host
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.python import Evaluator
from mugraph.triton_text.reals import Reals
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.running import Launch, World
from mugraph.triton_text.source import Function, Named, listed
from mugraph.triton_text.tensor_methods import ATTRIBUTES, METHODS, Device, Given, item_bytes
from mugraph.triton_text.tensors import HostTensor, dense, extent_of
from mugraph.triton_text.tiles import Kind, Pointers
from mugraph.triton_text.waits import Stream

TYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32",
    "float64": "float64", "double": "float64", "int32": "int32", "int": "int32", "int64": "int64", "long": "int64",
    "bool": "int1", "int8": "int8", "uint8": "uint8", "int16": "int16",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
}  # fmt: skip
OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_pdl"})
_NO_ARITHMETIC = Arithmetic(None)


@dataclass(frozen=True)
class Method:
    owner: HostTensor
    name: str


@dataclass(frozen=True)
class Launcher:
    """A kernel with its grid."""

    function: Function
    grid: Any


@dataclass(frozen=True)
class Config:
    """What triton.Config makes."""

    arguments: Mapping[str, Any]


class LauncherRun:
    """One run of a launcher. What it launches is surveyed at once."""

    def __init__(self, world: World, configuration: int = 0) -> None:
        """configuration: of kernels that have several, which one"""
        self.world = world
        self.configuration, self.configurations = configuration, 1
        self.evaluator = Evaluator(self)
        self.allocated: list[Memory] = []
        self.launches: list[Launch] = []
        self._stream = Stream()

    # --- Language

    def binary(self, op: str, a: Any, b: Any) -> Any:
        if op in ("==", "!=") and not isinstance(a, HostTensor) and not isinstance(b, HostTensor):
            return (a == b) == (op == "==")
        raise Unreadable(f"{op} of tensors in a launcher is not read")

    def unary(self, op: str, a: Any) -> Any:
        raise Unreadable(f"{op} of a tensor in a launcher is not read")

    def attribute(self, owner: Any, name: str) -> Any:
        match owner, name:
            case Named(full), _:
                last = full.rsplit(".", 1)[-1]
                known = number_of(full)
                if known is not None:
                    return known
                if full == "torch.version.hip":
                    return None
                return Kind(TYPES[last]) if full.startswith(("torch.", "tl.")) and last in TYPES else owner
            case HostTensor(), _ if name in ATTRIBUTES:
                return ATTRIBUTES[name](owner)
            case HostTensor(), _:
                return Method(owner, name)
            case _ if name == "value" and is_host(owner):
                return owner
            case Device(), "index":
                return 0
            case Device(), "type" | "backend":
                return "cuda"
            case Config(), "kwargs":
                return owner.arguments
            case Kind(), "itemsize":
                return item_bytes(owner)
            case Function(), ("run" | "warmup"):
                raise Unreadable(f"{owner.name}.{name} is not read")
            case dict(), "get" | "items" | "keys" | "values":
                return Method(owner, name)  # type: ignore[arg-type]
            case _:
                raise Unreadable(f"{name} of {type(owner).__name__} is not read")

    def subscript(self, owner: Any, key: Any) -> Any:
        match owner:
            case Function():
                return Launcher(owner, key)
            case HostTensor():
                return owner.indexed(key)
            case _:
                raise Unreadable(f"an element of {type(owner).__name__} is taken")

    def truth(self, value: Any) -> bool:
        if isinstance(value, HostTensor):
            raise Unreadable("what is done depends on a tensor's numbers")
        return True

    def loop(self, iterable: Any) -> Iterable[Any]:
        if isinstance(iterable, Range):
            return range(iterable.start, iterable.stop, iterable.step)
        raise Unreadable("a loop over what is no range")

    def call(self, function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match function:
            case Launcher():
                self._launch(function, arguments, named)
                return None
            case Method(owner, name):
                return self._method(owner, name, arguments, named)
            case Named(name):
                return self._named(name, arguments, named)
            case Function():
                raise Unreadable(f"the kernel {function.name} is called without a grid")
            case _:
                raise Unreadable(f"{type(function).__name__} is called")

    # --- launches

    def _launch(self, launcher: Launcher, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        line = self.evaluator.line
        function = launcher.function
        if not function.is_jit:
            raise Unreadable(f"{function.name} is launched and is no kernel of Triton")
        own = {name: value for name, value in named.items() if name not in OPTIONS}
        own |= self._decorated(function, arguments, own)
        bound = self.evaluator.bound(function, arguments, own)
        grid = launcher.grid
        if isinstance(grid, Function):
            grid = self.evaluator.called(grid, [dict(bound)], {})
        sizes = (*listed(grid), 1, 1)[:3]
        if not all(isinstance(size, int) for size in sizes):
            raise Unreadable("the grid is not made of integers")
        if min(sizes) < 1:
            return
        given = {name: self._argument(value) for name, value in bound.items()}
        launch = Launch(self.world, len(self.world.steps), function, given, (sizes[0], sizes[1], sizes[2]), line, _run)
        launch.start = self._stream.start_of(named)
        self.world.steps.append(launch)
        self.launches.append(launch)
        launch.survey(surveyed_in_one)

    def _decorated(self, function: Function, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that decorators give: of the configuration that this run is of, and by heuristics."""
        found: dict[str, Any] = {}
        for name, expression in function.decorators:
            options = {one.arg: one.value for one in expression.keywords} if isinstance(expression, ast.Call) else {}
            given = expression.args if isinstance(expression, ast.Call) else []
            match name:
                case "triton.jit":
                    pass
                case "triton.autotune" if "configs" in options or given:
                    every = self.evaluator.value(options.get("configs") or given[0], {}, function.module)
                    configs: list[Mapping[str, Any]] = []
                    for one in every:  # those that differ in warps and stages alone are one here
                        configs += [one.arguments] if one.arguments not in configs else []
                    self.configurations = max(self.configurations, len(configs))
                    found |= configs[self.configuration % len(configs)]
                case "triton.heuristics" if given or "values" in options:
                    rules = self.evaluator.value(given[0] if given else options["values"], {}, function.module)
                    names = [one.arg for one in function.node.args.args]
                    known = dict(zip(names, arguments, strict=False)) | dict(named) | found
                    for parameter, rule in rules.items():
                        found[parameter] = self.evaluator.called(rule, [known | found], {})
                case _:
                    raise Unreadable(f"the kernel {function.name} has the decorator {name}, which is not read")
        return found

    def _argument(self, value: Any) -> Any:
        if isinstance(value, HostTensor):
            return Pointers(value.memory, number(value.offset))
        if is_host(value) or isinstance(value, Kind | Function | Named | PointerKind):
            return value
        raise Unreadable(f"{type(value).__name__} is given to a kernel")

    # --- tensors

    def _method(self, owner: Any, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if isinstance(owner, dict):
            return _entries(cast("dict[Any, Any]", owner), name, arguments)
        if name == "contiguous" and "memory_format" in named:
            return self._in_format(owner, named["memory_format"])
        if name in ("clone", "contiguous") and not (name == "contiguous" and owner.is_contiguous):
            return self._computed("torch.clone", [owner], {})
        if name in ("new_empty", "new_zeros"):
            size = listed(arguments[0]) if len(arguments) == 1 else tuple(arguments)
            return self._made(size, named.get("dtype") or Kind(owner.memory.kind), 0.0 if name == "new_zeros" else None)
        if name not in METHODS:
            raise Unreadable(f"the method {name} of a tensor is not read")
        return METHODS[name](owner, Given(tuple(arguments), named))

    def _in_format(self, tensor: HostTensor, memory_format: Any) -> HostTensor:
        """A copy with the channels last, whether or not they are so already."""
        rank = len(tensor.shape)
        wanted = {4: "torch.channels_last", 5: "torch.channels_last_3d"}.get(rank)
        if not isinstance(memory_format, Named) or memory_format.name != wanted:
            raise Unreadable("a memory format other than channels last is not read")
        copied = self._computed("torch.clone", [tensor.permuted((0, *range(2, rank), 1))], {})
        return copied.permuted((0, rank - 1, *range(1, rank - 1)))

    def _named(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match name:
            case "builtins.dict":
                return dict(named)
            case "builtins.range":
                ends = (0, *arguments, 1) if len(arguments) == 1 else (*arguments, 1)[:3]
                return range(*ends)
            case "builtins.isinstance":
                return any(_is_instance(arguments[0], kind) for kind in listed(arguments[1]))
            case _ if name.startswith("builtins."):
                if any(not is_host(one) for one in arguments):
                    raise Unreadable(f"{name.removeprefix('builtins.')} of a tensor is not read")
                return host_builtin(name.removeprefix("builtins."), arguments)
            case _ if name.startswith("math."):
                return host_math(name, arguments)
            case "torch.compiler.is_compiling" | "torch.jit.is_scripting" | "torch.jit.is_tracing":
                return False
            case "torch.is_tensor":
                return isinstance(arguments[0], HostTensor)
            case "triton.cdiv" | "tl.cdiv":
                return cdiv(_NO_ARITHMETIC, *arguments)
            case "triton.next_power_of_2":
                return next_power_of_2(_NO_ARITHMETIC, *arguments)
            case "torch.cuda.device" | "torch.device" | "torch.no_grad" | "torch.inference_mode":
                return Device()
            case "torch.cuda.current_device" | "torch.cuda.device_of":
                return Device()
            case "tl.constexpr":
                return arguments[0]
            case "triton.Config":
                return Config(dict(arguments[0] if arguments else named["kwargs"]))
            case _ if name.startswith("triton.runtime."):
                return Device()
            case "torch.is_grad_enabled":
                return False
            case "torch.empty" | "torch.zeros" | "torch.ones":
                size = listed(arguments[0]) if len(arguments) == 1 else arguments
                fill = {"torch.empty": None, "torch.zeros": 0.0, "torch.ones": 1.0}[name]
                return self._made(named.get("size", size), named.get("dtype"), fill)
            case "torch.full":
                return self._made(arguments[0], named.get("dtype"), float(arguments[1]))
            case "torch.empty_like" | "torch.zeros_like" | "torch.ones_like":
                fill = {"torch.empty_like": None, "torch.zeros_like": 0.0, "torch.ones_like": 1.0}[name]
                tensor = arguments[0]
                kind = named.get("dtype") or Kind(tensor.memory.kind)
                strides = tensor.strides if _fills(tensor) else dense(tensor.shape)
                return self._made(tensor.shape, kind, fill, strides)
            case "torch.empty_strided":
                return self._made(arguments[0], named.get("dtype"), None, tuple(arguments[1]))
            case _ if name in CALLS:
                return self._computed(name, arguments, named)
            case _:
                raise Unreadable(f"{name} is not read")

    def _made(self, size: Any, dtype: Any, fill: float | None, strides: tuple[int, ...] | None = None) -> HostTensor:
        shape = listed(size)
        if not all(isinstance(n, int) for n in shape):
            raise Unreadable("the shape of a tensor is not made of integers")
        kind = "float32" if dtype is None else dtype.name if isinstance(dtype, Kind) else ""
        if not kind:
            raise Unreadable("the type of a tensor is not known")
        strides = dense(shape) if strides is None else strides
        if fill is not None:
            self._stream.other()
        name = f"tensor {len(self.allocated)} of the launcher"
        memory = Memory(name, extent_of(shape, strides), kind, shape, strides, fill=fill)
        self.allocated.append(memory)
        return HostTensor(memory, shape, strides)

    def _computed(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> HostTensor:
        reading = CALLS[name]
        given = dict(zip(reading.parameters, arguments, strict=False)) | dict(named)
        out = given.pop("out", None)
        operands = tuple(given.pop(one, None) for one in reading.operands or reading.parameters[: reading.tensors])
        while operands and operands[-1] is None:
            operands = operands[:-1]
        if not operands or not all(isinstance(one, HostTensor) for one in operands):
            raise Unreadable(f"{name} is called with other than tensors")
        shape, kind = reading.shape(operands, given), reading.kind(operands, given)
        if out is None:
            out = self._made(shape, Kind(kind), None)
        if not isinstance(out, HostTensor) or out.shape != shape or out.memory.kind != kind:
            raise Wrong("type", f"{name} has a result of {kind} {list(shape)}, which is written to another one")
        call = Call(
            self.world,
            len(self.world.steps),
            name,
            operands,
            given,
            out,
            self.evaluator.line,
            reading.compute,
            reading.planes,
            reading.copies,
        )
        self._stream.other()
        self.world.steps.append(call)
        call.survey()
        return out


def _entries(entries: dict[Any, Any], method: str, arguments: Sequence[Any]) -> Any:
    match method:
        case "get":
            return entries.get(*arguments)
        case "items":
            return tuple(entries.items())
        case _:
            return tuple(entries) if method == "keys" else tuple(entries.values())


def _is_instance(value: Any, kind: Any) -> bool:
    known = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple, "list": tuple, "dict": dict}
    match kind:
        case Named(name) if name.removeprefix("builtins.") in known:
            return isinstance(value, known[name.removeprefix("builtins.")])
        case Named("torch.Tensor" | "torch.nn.Parameter"):
            return isinstance(value, HostTensor)
        case _:
            raise Unreadable("isinstance of a type that is not known")


def _run(launch: Launch, blocks: NDArray[np.int64], reals: Reals | None) -> None:
    Run(launch, blocks, reals).execute()


def _fills(tensor: HostTensor) -> bool:
    """Does it lie without gaps, in whatever order?"""
    return extent_of(tensor.shape, tensor.strides) == prod(tensor.shape)
