"""Kernels launched without Triton's binder: what Triton compiled is called again where all is as it was, and Triton is
asked everywhere else. Its compiler and its driver are stood in for: there is no GPU here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton

GRID = (4, 2, 1)


def kernel(x_ptr: Any, out_ptr: Any, size: Any, BLOCK: Any) -> None:
    """Stands for a kernel's text."""


class Parameter(SimpleNamespace):
    is_constexpr: bool


@dataclass
class Jit:
    """As much of triton.JITFunction as a launch meets. log: of launches, how and with what"""

    names: tuple[str, ...] = ("x_ptr", "out_ptr", "BLOCK")
    log: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    pre_run_hooks: list[Any] = field(default_factory=list[Any])
    used_global_vals: dict[Any, Any] = field(default_factory=dict[Any, Any])
    compiled: Any = "a kernel"

    @property
    def params(self) -> list[Parameter]:
        return [Parameter(is_constexpr=name.isupper()) for name in self.names]

    @property
    def arg_names(self) -> list[str]:
        return list(self.names)

    def run(self) -> None:
        """What `type(jit).run` is compared with."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        def ordinary(*given: Any, **constants: Any) -> Any:
            self.log.append(("Triton", grid, given, constants))
            if self.compiled != "a kernel":
                return self.compiled
            return SimpleNamespace(run=self.directly, function=77, packed_metadata=(4, 1, 0))

        return ordinary

    def directly(self, x: int, y: int, z: int, stream: int, function: int, metadata: Any, *rest: Any) -> None:
        assert (function, metadata, rest[:3]) == (77, (4, 1, 0), (None, None, None))
        self.log.append(("directly", (x, y, z), stream, rest[3:]))

    @property
    def ways(self) -> list[str]:
        return [one[0] for one in self.log]


@pytest.fixture
def runtime(gated_file, maker, source, part, load, monkeypatch) -> Any:
    """A kernel module with the runtime in it, in which the CPU counts as the device that is current."""
    from mugraph.edit.apply import apply_files

    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    kernels = load(gated_file).kernels
    monkeypatch.setattr(kernels, "_usual_run", Jit.run)
    monkeypatch.setattr(kernels, "_current_device", lambda: -1)
    monkeypatch.setattr(kernels, "_current_stream", lambda device: 5)
    return kernels


@pytest.fixture
def jit() -> Jit:
    return Jit()


@pytest.fixture
def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(64), torch.empty(64)


def test_triton_compiles_and_is_passed_by_from_then_on(runtime, jit, tensors) -> None:
    x, out = tensors
    made = runtime._Kernel(jit)
    for _ in range(3):
        made[GRID](x, out, BLOCK=16, num_warps=4)
    assert jit.log == [
        ("Triton", GRID, (x, out), {"BLOCK": 16, "num_warps": 4}),
        *[("directly", GRID, 5, (x.data_ptr(), out.data_ptr(), 16))] * 2,
    ]


def test_a_grid_of_one_number(runtime, jit, tensors) -> None:
    made = runtime._Kernel(jit)
    for _ in range(2):
        made[3,](*tensors, BLOCK=16)
    assert jit.log[1][1] == (3, 1, 1)


def test_the_stream_is_asked_each_time(runtime, jit, tensors, monkeypatch) -> None:
    made = runtime._Kernel(jit)
    for stream in (1, 1, 2):
        monkeypatch.setattr(runtime, "_current_stream", lambda device, stream=stream: stream)
        made[GRID](*tensors, BLOCK=16)
    assert [one[2] for one in jit.log[1:]] == [1, 2]


@pytest.mark.parametrize("other", ["type", "misaligned", "constants", "device"])
def test_what_was_not_compiled_is_tritons(other, runtime, jit, tensors, monkeypatch) -> None:
    made, (x, out) = runtime._Kernel(jit), tensors
    made[GRID](x, out, BLOCK=16)
    constants = {"BLOCK": 16}
    if other == "type":
        x = x.half()
    elif other == "misaligned":
        x = torch.ones(65)[1:]
    elif other == "constants":
        constants = {"BLOCK": 32}
    else:
        monkeypatch.setattr(runtime, "_current_device", lambda: 1)
    made[GRID](x, out, **constants)
    assert jit.ways == ["Triton", "Triton"]


def test_a_misaligned_first_launch_teaches_nothing(runtime, jit, tensors) -> None:
    made, (x, out) = runtime._Kernel(jit), tensors
    made[GRID](torch.ones(65)[1:], out, BLOCK=16)
    made[GRID](x, out, BLOCK=16)
    made[GRID](x, out, BLOCK=16)
    assert jit.ways == ["Triton", "Triton", "directly"]


def test_sizes_are_told_apart_as_triton_does(runtime, tensors) -> None:
    """1, multiples of 16, other numbers, and those that need 64 bits are compiled each by itself."""
    jit = Jit(("x_ptr", "out_ptr", "size", "BLOCK"))
    made = runtime._Kernel(jit)
    for size in (1, 16, 17, 2**33 + 1, 1, 32, 19, 2**33 + 3):
        made[GRID](*tensors, size, BLOCK=16)
    assert jit.ways == ["Triton"] * 4 + ["directly"] * 4
    assert [one[3][2] for one in jit.log[4:]] == [1, 32, 19, 2**33 + 3]


@pytest.mark.parametrize("hook", ["launch_enter_hook", "launch_exit_hook"])
@pytest.mark.parametrize("kind", ["chain", "function", "none"])
def test_hooks_see_every_launch(hook, kind, runtime, jit, tensors, monkeypatch) -> None:
    made = runtime._Kernel(jit)
    made[GRID](*tensors, BLOCK=16)
    made[GRID](*tensors, BLOCK=16)
    if kind == "chain":
        monkeypatch.setattr(getattr(triton.knobs.runtime, hook), "calls", [print])
    else:
        monkeypatch.setattr(triton.knobs.runtime, hook, print if kind == "function" else None)
    made[GRID](*tensors, BLOCK=16)
    assert jit.ways == ["Triton", "directly", "Triton"]


def test_another_run_of_tritons_is_used(runtime, jit, tensors, monkeypatch) -> None:
    """Profilers put theirs in its place; kernels may have hooks of their own."""
    made = runtime._Kernel(jit)
    made[GRID](*tensors, BLOCK=16)
    with monkeypatch.context() as patch:
        patch.setattr(Jit, "run", lambda self: None)
        made[GRID](*tensors, BLOCK=16)
    jit.pre_run_hooks.append(print)
    made[GRID](*tensors, BLOCK=16)
    assert jit.ways == ["Triton"] * 3
    jit.pre_run_hooks.clear()
    made[GRID](*tensors, BLOCK=16)
    assert jit.ways[3:] == ["directly"]


@pytest.mark.parametrize("odd", ["future", "no function", "globals", "constants among tensors", "no constant"])
def test_what_is_not_understood_stays_tritons(odd, runtime, jit, tensors) -> None:
    if odd == "future":
        jit.compiled = object()
    elif odd == "no function":
        jit.compiled = SimpleNamespace(run=jit.directly, function=None, packed_metadata=())
    elif odd == "globals":
        jit.used_global_vals = {("SCALE", 1): (2.0, {})}
    elif odd == "constants among tensors":
        jit.names = ("x_ptr", "BLOCK", "out_ptr")
    made, constants = runtime._Kernel(jit), {} if odd == "no constant" else {"BLOCK": 16}
    for _ in range(2):
        made[GRID](*tensors, **constants)
    assert jit.ways == ["Triton", "Triton"]


def test_what_the_launch_raises_is_raised(runtime, jit, tensors, monkeypatch) -> None:
    made = runtime._Kernel(jit)
    made[GRID](*tensors, BLOCK=16)

    def failing(*_: Any) -> None:
        raise RuntimeError("Triton Error [CUDA]: out of memory")

    monkeypatch.setattr(jit, "directly", failing)
    other = runtime._Kernel(jit)
    other[GRID](*tensors, BLOCK=16)
    with pytest.raises(RuntimeError, match="out of memory"):
        other[GRID](*tensors, BLOCK=16)


def test_threads(runtime, jit, tensors) -> None:
    made = runtime._Kernel(jit)
    made[GRID](*tensors, BLOCK=16)
    threads = [threading.Thread(target=lambda: [made[GRID](*tensors, BLOCK=16) for _ in range(50)]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert jit.ways == ["Triton", *["directly"] * 200]


def test_many_grids_do_not_stay(runtime, jit, tensors) -> None:
    made = runtime._Kernel(jit)
    for size in range(1500):
        made[size, 1, 1]
    assert len(made) <= 1001


def test_outputs_on_a_gpu_are_made_as_compiled_code_makes_them(runtime, monkeypatch) -> None:
    """On the CPU they are PyTorch's; on a GPU of the shape, row by row, of the type, each strides worked out once."""
    made: list[Any] = []
    monkeypatch.setattr(runtime, "_empty_on_gpu", lambda *given: made.append(given) or torch.empty(0))
    on_cpu = runtime._torch.empty((2, 3), dtype=torch.float16, device=torch.device("cpu"))
    assert (tuple(on_cpu.shape), on_cpu.dtype, made) == ((2, 3), torch.float16, [])
    for _ in range(2):
        runtime._torch.empty((2, 3, 4), dtype=torch.float16, device=torch.device("cuda", 0))
    assert made == [((2, 3, 4), (12, 4, 1), torch.float16)] * 2
    assert runtime._row_major[2, 3, 4] == (12, 4, 1)
    for rows in range(1100):
        runtime._torch.empty((rows, 1), dtype=torch.float16, device=torch.device("cuda", 0))
    assert len(runtime._row_major) <= 1001


def test_launching_functions_see_the_rest_of_torch_as_it_is(runtime, monkeypatch) -> None:
    assert runtime._torch.float16 is torch.float16
    monkeypatch.setattr(torch, "mm", "another")
    assert runtime._torch.mm == "another"


@pytest.mark.parametrize("lies", [((4, 8), (8, 1)), ((8, 4), (1, 8)), ((2, 16), (16, 1))])
def test_a_result_is_no_view_and_can_be_written_to_with_gradients(runtime: Any, lies: Any) -> None:
    weight = torch.ones(lies[0][-1], requires_grad=True)
    with torch.no_grad():
        result = runtime._seen_so(torch.ones(32), lies)
    assert (tuple(result.shape), result.stride()) == lies
    assert result._base is None
    result[...] *= weight
    result.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [float(lies[0][0])] * lies[0][-1]
