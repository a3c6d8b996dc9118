"""A region built by hand: `silu(x @ w) * u`, of which the product stays PyTorch and the rest is one small kernel."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Call, Named, PlainCalls, Position, Range, Ref, Region, SearchUnit, TensorInfo
from mugraph.ir.tensors import Tensor
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.research.launching import applied
from mugraph.verification.verdict import Verdict

ROWS, INNER, COLUMNS = 4, 8, 16
SIZES = {"m": ROWS, "n": COLUMNS}
DIMS = (("m",), ("n",))

JIT = """\
@triton.jit
def gate(product_ptr, u_ptr, gated_ptr, n: tl.constexpr):
    row = tl.program_id(0)
    offs_n = tl.arange(0, n)
    product = tl.load(product_ptr + row * n + offs_n)
    u = tl.load(u_ptr + row * n + offs_n)
    tl.store(gated_ptr + row * n + offs_n, product * tl.sigmoid(product) * u)"""

LAUNCHER = """\
def launch_gate(product, u):
    gated = torch.empty((4, 16), dtype=torch.float32, device=product.device)
    gate[(4, 1, 1)](product, u, gated, n=16, num_warps=1, num_stages=2)
    return gated"""


def tensor(name: str, dtype: str = "f32") -> Tensor:
    return Tensor(name, DIMS, (COLUMNS, 1), dtype, name)  # type: ignore[arg-type]


def gate_source(name: str = "gate") -> KernelSource:
    return KernelSource(
        name=name,
        jit=JIT.replace("def gate(", f"def {name}("),
        pointers=("product_ptr", "u_ptr", "gated_ptr"),
        constexprs={"n": COLUMNS},
        grid=(ROWS, 1, 1),
        inputs=(tensor("product"), tensor("u")),
        outputs=(tensor("gated"),),
        sizes=SIZES,
        num_warps=1,
        num_stages=2,
        launcher=LAUNCHER.replace("launch_gate", f"launch_{name}").replace("gate[", f"{name}["),
    )


def position(text: str, offset: int) -> Position:
    """The LSP position of a character, counted the slow and obvious way."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    line = before.rsplit("\n", 1)[-1]
    return Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)


def range_of(text: str, part: str, occurrence: int = 0) -> Range:
    at = -1
    for _ in range(occurrence + 1):
        at = text.index(part, at + 1)
    return Range(position(text, at), position(text, at + len(part)))


@dataclass(frozen=True)
class Maker:
    """Makes plans for parts of a source text. All of them compute `silu(x @ w) * u`."""

    kernels: Mapping[str, KernelSource]

    def plan(
        self,
        text: str,
        part: str,
        *,
        name: str = "gated",
        unit: str = "statements",
        live_ins: tuple[str, str, str] = ("x", "self.w", "self.u"),
        live_outs: tuple[str, ...] = ("y",),
        guards: tuple[str, ...] = (),
        occurrence: int = 0,
        kernel: str = "gate",
    ) -> RegionPlan:
        """`live_outs`: the first is the result, a second one the product."""
        place = range_of(text, part, occurrence)
        info = {
            0: TensorInfo((ROWS, INNER), (INNER, 1), "f32"),
            1: TensorInfo((INNER, COLUMNS), (COLUMNS, 1), "f32"),
            **{value: TensorInfo((ROWS, COLUMNS), (COLUMNS, 1), "f32") for value in (2, 3, 4, 5)},
        }
        product = Call("torch.matmul", (Ref(0), Ref(1)), {}, (3,), place)
        silu = Call("torch.nn.functional.silu", (Ref(3),), {}, (4,), place)
        times = Call("Tensor.__mul__", (Ref(4), Ref(2)), {}, (5,), place)
        region = Region(
            function="Gated.forward",
            range=place,
            unit=unit,  # type: ignore[arg-type]
            text=part,
            live_ins=tuple(Named(expression, value) for value, expression in enumerate(live_ins)),
            live_outs=tuple(Named(name, value) for name, value in zip(live_outs, (5, 3), strict=False)),
            calls=(product, silu, times),
            values=info,
            guards=guards,
            function_args=("self", "x"),
        )
        program = TensorProgram(
            "gate",
            SIZES,
            (tensor("product"), tensor("u")),
            (
                Op("product", Kind.LOAD, axes=("m", "n"), tensor="product"),
                Op("u", Kind.LOAD, axes=("m", "n"), tensor="u"),
                Op("silu", Kind.UNARY, ("product",), ("m", "n"), fn="silu"),
                Op("gated", Kind.MUL, ("silu", "u"), ("m", "n")),
            ),
            {"gated": tensor("gated")},
        )
        block = BlockGraph(
            "gate",
            SIZES,
            (tensor("product"), tensor("u"), tensor("gated")),
            (*program.ops, Op("stored", Kind.STORE, ("gated",), ("m", "n"), tensor="gated")),
        )
        graph = GraphKernel(kernel, block, Schedule((("m", 1),), num_warps=1, num_stages=2))
        verdict = Verdict(
            passed=True,
            lax=True,
            repetitions=4,
            sizes=({"m": 2, "n": 3}, {"m": 3, "n": 2}),
            bound=3e-10,
            max_rel_error=4e-7,
            eager_rel_error=3e-7,
            float_sizes=SIZES,
            float_device="interpreter",
            versions={"torch": "2.13.0", "triton": "3.7.1"},
        )
        unit = SearchUnit(program, {"product": 3, "u": 2}, {"gated": 5}, (silu, times))
        return RegionPlan(
            name,
            region,
            (PlainCalls((product,)), KernelStep(unit, graph, verdict)),
            MuGraph(
                "gated",
                SIZES,
                (),
                (),
                ("gated",),
                (LibraryKernel("product", "x @ self.w", ("x", "w"), ("product",)), graph),
            ),
        )


@pytest.fixture
def maker() -> Maker:
    return Maker({"gate": gate_source()})


SOURCE = '''\
"""A gated product."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.w = nn.Parameter(torch.randn(8, 16))
        self.u = nn.Parameter(torch.randn(4, 16))
        self.scale = 1.0

    def forward(self, x):
        # what the gate multiplies
        y = functional.silu(
            x @ self.w,  # the product
        ) * self.u  # and the gate
        return y + 1
'''

PART = SOURCE[SOURCE.index("y = functional") : SOURCE.index("  # and the gate")]


@pytest.fixture
def gated_file(tmp_path: Path) -> Path:
    path = tmp_path / "gated_model.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def source() -> str:
    return SOURCE


@pytest.fixture
def part() -> str:
    return PART


@dataclass(frozen=True)
class Loaded:
    """An edited file and its kernel module, imported."""

    model: ModuleType
    kernels: ModuleType


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Loaded]]:
    """Imports an edited file from its folder, as Python would when it is run there."""
    names: list[str] = []

    def imported(path: Path) -> Loaded:
        monkeypatch.syspath_prepend(str(path.parent))
        importlib.invalidate_caches()
        module = f"{path.stem}_mugraph"
        names.extend((path.stem, module))
        return Loaded(importlib.import_module(path.stem), importlib.import_module(module))

    yield imported
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def load_with_c(load, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Loaded]:
    """As `load`; every device counts as tested, kernels as right, and what is known of guards is asked in C."""

    def loaded(path: Path) -> Loaded:
        found = load(path)
        monkeypatch.setattr(found.kernels, "_tested_gpu", lambda kind, index: True)
        monkeypatch.setattr(found.kernels, "_right_here", lambda *_: True)
        assert found.kernels._make_native()
        return found

    return loaded


@pytest.fixture(scope="module")
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the test module's TEXT, with its kernels written in."""
    path = tmp_path_factory.mktemp("written") / f"{request.module.__name__.rpartition('.test_')[2]}_model.py"
    path.write_text(request.module.TEXT)
    assert applied(path, "h100")
    return path


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], list[str]]:
    """Lets a kernel module run here: every device counts as tested, and the launcher is PyTorch. Returns the log of
    launches."""

    def patched(kernels: ModuleType) -> list[str]:
        log: list[str] = []

        def launch(product: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
            log.append("gate")
            return torch.nn.functional.silu(product) * u

        monkeypatch.setattr(kernels, "_tested_gpu", lambda kind, index: True)
        monkeypatch.setattr(kernels, "launch_gate", launch)
        return log

    return patched
