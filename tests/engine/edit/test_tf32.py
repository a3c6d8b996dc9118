"""A kernel that takes TF32 because the program does asks, at each call, whether it still does; and what compares it
with PyTorch at its first use lets it be as wrong as that makes it, and no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.edit.module.file import module_text
from mugraph.edit.module.judge import JUDGE
from mugraph.edit.module.masks import MASKS
from mugraph.edit.module.parts import IMPORTS
from mugraph.edit.module.runtime import RUNTIME
from mugraph.ir.block import TF32
from mugraph.ir.ops import Kind, Op
from mugraph.plans.tf32 import asked, asking

Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def taking(plan: Any, precision: str) -> Any:
    """The plan, as if its kernel had a product that the program lets take TF32."""
    plain, step = plan.steps
    product = Op("p", Kind.DOT, ("a", "b"), ("m", "n"), ("k",), tf32="cublas")
    block = replace(step.kernel.block, ops=(*step.kernel.block.ops, product))
    kernel = replace(step.kernel, block=block, schedule=replace(step.kernel.schedule, precision=precision))
    calls = tuple(replace(call, target="torch.matmul", tf32=True) for call in step.unit.calls[:1])
    step = replace(step, kernel=kernel, unit=replace(step.unit, calls=calls))
    return replace(plan, region=asking(plan.region, (plain, step)), steps=(plain, step))


@pytest.fixture
def plan(maker, source, part):
    return maker.plan(source, part)


def test_it_asks_only_where_a_kernel_takes_it(maker, plan) -> None:
    assert asked(taking(plan, "ieee").region.guards) == asked(plan.region.guards) == ()
    guarded = taking(plan, TF32)
    assert asked(guarded.region.guards) == ("cublas",)
    text = module_text([guarded], maker.kernels, original_path=Path("model.py"))
    assert "and _takes_tf32('cublas')" in text
    assert f"_TF32 = {{\n    {plan.name!r}: ('cublas',),\n}}" in text
    assert "_TF32 = {}" in module_text([plan], maker.kernels, original_path=Path("model.py"))


SETTINGS = [
    ("pass", True, False),
    ("torch.backends.cuda.matmul.allow_tf32 = True", True, True),
    ("torch.backends.cudnn.allow_tf32 = False", False, False),
    ('torch.set_float32_matmul_precision("high")', True, True),
    ('torch.backends.fp32_precision = "tf32"', True, True),
    ('torch.backends.cudnn.conv.fp32_precision = "ieee"', False, False),
]

EACH = """\
import os, sys, torch, runtime
for setting in sys.argv[1:]:  # each in a process of its own, that has set nothing yet
    child = os.fork()
    if child == 0:
        exec(setting)
        print(f"{setting}: {[runtime._takes_tf32(one) for one in ('cudnn', 'cublas')]}", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, setting
"""


def test_it_is_told_whichever_way_it_was_set(tmp_path: Path) -> None:
    (tmp_path / "runtime.py").write_text(
        f"_SOURCE, _CAPABILITY, _RAN, _REGIONS, _PATHS, _CALLED_FUNCTIONS = '', (8, 0), {{}}, {{}}, {{}}, {{}}\n"
        f"_OUTSIDE_NAMES, _BUILTINS, _OWN, _CASES, _TF32 = {{}}, frozenset(), [], {{}}, {{}}\n{RUNTIME}"
    )
    run = [sys.executable, "-c", EACH, *(setting for setting, _, _ in SETTINGS)]
    said = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [f"{setting}: {[cudnn, cublas]}" for setting, cudnn, cublas in SETTINGS]


def rounded(x: torch.Tensor) -> torch.Tensor:
    return ((x.view(torch.int32) + 4096) & -8192).view(torch.float32)


def cut(x: torch.Tensor) -> torch.Tensor:
    return (x.view(torch.int32) & -8192).view(torch.float32)


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.nn.functional.linear(x, w))


def trouble(kernel: Product, folder: Path, settings: tuple[str, ...]) -> str | None:
    text = folder / "kernels.py"
    text.write_text(f"{IMPORTS}\n\n{JUDGE}\n\n{MASKS}")
    module: dict[str, Any] = {"__name__": "kernels", "__file__": str(text)}
    exec(compile(text.read_text(), str(text), "exec"), module)
    specs = (((48, 256), (256, 1), torch.float32, 0.25), ((64, 256), (256, 1), torch.float32, 0.25))
    module["_CASES"] = {"case": (kernel, product, None, specs)}
    module["_TF32"] = {"case": settings} if settings else {}
    ((_, found),) = module["_errors"]("case", torch.device("cpu"))
    return found


def test_the_first_use_lets_it_round_and_nothing_else(tmp_path: Path) -> None:
    def right(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return product(rounded(x), rounded(w))

    wrong: list[Product] = [
        lambda x, w: product(cut(x), cut(w)),
        lambda x, w: product(x.bfloat16().float(), w.bfloat16().float()),
        lambda x, w: 1.001 * right(x, w),
        lambda x, w: product(rounded(x[:, :-1].contiguous()), rounded(w[:, :-1].contiguous())),
    ]
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    assert trouble(right, tmp_path, ("cublas",)) is None
    assert trouble(product, tmp_path, ("cublas",)) is None
    assert [number for number, one in enumerate(wrong) if trouble(one, tmp_path, ("cublas",)) is None] == []
    for settings in ((), ("cudnn",)):
        assert trouble(right, tmp_path, settings) is not None
        assert trouble(product, tmp_path, settings) is None
    assert before == (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
