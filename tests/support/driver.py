"""Stands in for Triton's compiler and the CUDA driver in tests of launches: kernels are what a test says they do with
memory, and what is told to whom is noted."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import triton

from tests.support.modules import imported

Places = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """number: stands for the driver's handle; does: with the places of its tensors, so many"""

    number: int
    tensors: int
    does: Callable[[Places], None]


class Attribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_int * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


class Device:
    """The driver. calls: what PyTorch's launcher was told; native: what the driver itself was told, and early: which of
    these kernels may start before the one before it has ended; ordinary: kernels that Triton launched; made: tensors
    that were made; capturing, trouble: what it answers when asked, and when it is to launch"""

    def __init__(self, kernels: dict[str, Kernel]) -> None:
        self.kernels = kernels
        self.calls: list[tuple[Any, ...]] = []
        self.native: list[tuple[Any, ...]] = []
        self.early: list[int] = []
        self.ordinary: list[str] = []
        self.made: list[Any] = []
        self.current, self.stream, self.capturing, self.trouble = 0, 5, 0, 0
        size, number, places = ctypes.c_size_t, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)
        launch = ctypes.CFUNCTYPE(ctypes.c_int, size, *[number] * 7, size, places, size)
        ask = ctypes.CFUNCTYPE(ctypes.c_int, size, ctypes.POINTER(ctypes.c_int))
        place = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))
        current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.POINTER(size))
        early = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Config), size, places, size)
        launches = launch(self._launched), early(self._launched_early)
        self.functions = *launches, ask(self._asked), place(self._place), current(self._stream)

    @property
    def driver(self) -> tuple[int, ...]:
        """Addresses of its functions, and of PyTorch's that gives the current stream."""
        return tuple(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self.functions)

    def launch(self, function: int, *given: Any) -> None:
        """What PyTorch's launcher is."""
        self.calls.append((function, *given))
        self.run(function, given[6][:-2])

    def run(self, function: int, places: Places) -> None:
        next(one for one in self.kernels.values() if one.number == function).does(places)

    def empty(self, shape: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
        self.made.append((shape, strides, dtype))
        return torch.empty_strided(shape, strides, dtype=dtype)

    def disturb(self, what: str, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Something that a prepared launch is not made for: another current device, hooks of Triton's or of the
        kernel's own, another function that launches."""
        match what:
            case "device":
                self.current = 1
                monkeypatch.setattr(torch.cuda, "device_of", lambda tensor: contextlib.nullcontext())
            case "hook":
                monkeypatch.setattr(triton.knobs.runtime.launch_enter_hook, "calls", [print])
            case "odd hook":
                monkeypatch.setattr(triton.knobs.runtime, "launch_exit_hook", print)
            case "run":
                monkeypatch.setattr(Jit, "run", lambda self: None)
            case "own hook":
                kernel.jit.pre_run_hooks.append(print)
            case _:
                raise AssertionError(what)

    def stands_in(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on the module's functions launch kernels on this device."""
        for name in self.kernels:
            monkeypatch.setattr(module, name, module._Kernel(Jit(getattr(module, name).jit, self)))
        stands_in: dict[str, Any] = {
            "_usual_run": Jit.run, "_place_of": lambda tensor: 0, "_current_device": lambda: self.current,
            "_current_stream": lambda device: self.stream, "_capturing": lambda: False, "_driver": lambda: self.driver,
            "_empty_on_gpu": self.empty, "_launch_at": self.launch,
        }  # fmt: skip
        for name, value in stands_in.items():
            monkeypatch.setattr(module, name, value)

    def _launched(self, function: int, *given: Any) -> int:
        *how, stream, values, _ = given
        count = next(one.tensors for one in self.kernels.values() if one.number == function)
        places = tuple(ctypes.c_uint64.from_address(values[at]).value for at in range(count + 2))
        self.native.append((function, *how, stream, places))
        if not self.trouble:
            self.run(function, places[:count])
        return self.trouble

    def _launched_early(self, config: Any, function: int, values: Any, extra: int) -> int:
        told, [attribute] = config[0], config[0].attributes[: config[0].count]
        assert (attribute.id, attribute.value[0]) == (6, 1)  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        self.early.append(function)
        return self._launched(function, *told.grid, *told.block, told.shared, told.stream, values, extra)

    def _place(self, device: Any) -> int:
        device[0] = self.current
        return 0

    def _stream(self, device: int, stream: Any) -> int:
        stream[0] = self.stream
        return 0

    def _asked(self, stream: int, status: Any) -> int:
        status[0] = self.capturing
        return 0


TABLES = """
_SOURCE, _CAPABILITY, _RAN, _REGIONS, _CALLED_FUNCTIONS, _OUTSIDE_NAMES = "none.py", (0, 0), {}, {}, {}, {}
_BUILTINS, _OWN, _PATHS, _CASES, _TF32 = frozenset([]), [], {}, {}, {}
"""
"""Of a kernel module without regions."""


@contextlib.contextmanager
def kernel_module(folder: Path, name: str, text: str, operators: Sequence[str]) -> Iterator[ModuleType]:
    """A module of kernels and what launches them, with the shared runtime in it, imported. operators: their lines"""
    from mugraph.edit.module.runtime import RUNTIME

    path = folder / f"{name}.py"
    path.write_text("\n\n".join([text, TABLES, RUNTIME, *operators]) + "\n")
    with imported(path, name) as module:
        yield module


def device_of(module: ModuleType, kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch) -> Device:
    """What the module launches its kernels on, where nothing has been launched yet."""
    found = Device(kernels)
    found.stands_in(module, monkeypatch)
    for one in [one for one in vars(module).values() if hasattr(one, "prepared")]:
        one.prepared.clear()
        one.tried.clear()
        one.now.clear()
        one.ways.clear()
    module._texts.clear()
    return found


class Jit:
    """As much of triton.JITFunction as a launch meets."""

    metadata: dict[str, Any]

    def __init__(self, jit: Any, device: Device) -> None:
        self.name, self.arg_names, self.params = jit.__name__, jit.arg_names, jit.params
        self.device, self.used_global_vals, self.pre_run_hooks = device, {}, []
        self.metadata = {"num_warps": 4, "shared": 512, "num_ctas": 1, "cluster_dims": (1, 1, 1)}

    def run(self) -> None:
        """What `type(jit).run` is compared with."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        number = self.device.kernels[self.name].number

        def ordinary(*given: torch.Tensor | int, **constants: Any) -> Any:
            directly(*(one if isinstance(one, int) else one.data_ptr() for one in given))
            kinds = ["i32" if isinstance(one, int) else "*fp32" for one in given]
            signature = dict.fromkeys(self.arg_names, "constexpr") | dict(zip(self.arg_names, kinds, strict=False))
            return SimpleNamespace(
                run=lambda *told: directly(*told[9 : 9 + len(given)]),
                function=number,
                packed_metadata=(),
                metadata=SimpleNamespace(**self.metadata),
                src=SimpleNamespace(signature=signature),
            )

        def directly(*places: int) -> None:
            self.device.ordinary.append(self.name)
            self.device.run(number, places)

        return ordinary
