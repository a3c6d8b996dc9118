"""Kernels side by side in one grid: their text, which is the same function, and what may not be one launch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from math import prod
from pathlib import Path

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.early import STARTS_NEXT, WAIT, Form, overlapped
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.one_grid import one_grid, with_one_grids
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.sizes.text import text_checked
from mugraph.verification.float_test import FloatTester
from syrupy.assertion import SnapshotAssertion

import tests.engine.codegen.graphs as g
from tests.engine.codegen.goldens import PythonFile
from tests.engine.codegen.norm_and_product import normed
from tests.engine.codegen.side_by_side import CASES, case
from tests.engine.codegen.splits import CASES as SPLIT


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


@pytest.mark.parametrize("name", ["projections", "grids"])
def test_text(name: str, snapshot: SnapshotAssertion) -> None:
    text = case(name).source.standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, "one_grid", "exec")
    assert max(map(len, text.splitlines())) <= 120


def test_text_that_starts_early(snapshot: SnapshotAssertion) -> None:
    text = overlapped(case("projections").source, after=True, before=True).standalone()
    assert text == snapshot(extension_class=PythonFile)


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_same_function(name: str, tester: FloatTester) -> None:
    one = case(name)
    kernels = lower_kernels(one.kernels, program=one.program).parts
    assert one.source.kernels == (one.source,)
    assert one.source.grid == (sum(prod(part.grid) for part in kernels), 1, 1)
    assert one.source.launcher.count("_kernel[") == 1
    text = text_checked(one.program, one.source, one.kernels)
    assert text.passed, text.reason
    found = tester.test_kernel(one.source, one.program)
    assert found.passed, found.reason


@pytest.mark.parametrize("name", ["projections", "product_and_elements"])
@pytest.mark.parametrize("form", ["waiting", "loading", "asking"])
def test_all_parts_wait(name: str, form: Form, tester: FloatTester) -> None:
    one = case(name)
    weights = [tensor.name for tensor in one.source.inputs]
    early = overlapped(one.source, after=True, before=True, form=form, weights=weights)
    assert early.early
    assert early.jit.count(WAIT) == early.jit.count(STARTS_NEXT) == len(one.kernels)
    text = text_checked(one.program, early, one.kernels)
    assert text.passed, text.reason
    found = tester.test_kernel(early, one.program)
    assert found.passed, found.reason
    for at in range(len(one.kernels)):  # whichever of them does not
        places = [match.start() for match in re.finditer(re.escape(f"    {WAIT}\n"), early.jit)]
        less = early.jit[: places[at]] + early.jit[places[at] + len(WAIT) + 5 :]
        refused = text_checked(one.program, replace(early, jit=less), one.kernels)
        assert "is launched before the kernel before it has ended" in (refused.reason or "")


def test_the_largest_comes_first() -> None:
    one = case("projections").source
    assert [part.name for part in one.joined] == ["q", "k_2", "v_3"]
    assert one_grid("all", one.joined[::-1]).joined == one.joined


def test_what_several_read_is_one_argument() -> None:
    one = case("projections")
    assert [tensor.name for tensor in one.program.tensors] == ["x", "w", "w_2", "w_3"]
    assert one.program.sizes == {"m": 1, "k": 96, "n": 64, "n_2": 24, "n_3": 20}
    assert one.source.launcher.splitlines()[0] == "def launch_q(x, w, w_2, w_3):"


def test_some_of_several_kernels() -> None:
    """The parts of a product that is cut, beside another kernel; what finishes it runs after both."""
    block, kernels = SPLIT["rms_norm_linear_tail"]
    graph = g.Graph("other", {"z": 40})
    graph.store(graph.unary("act", "silu", graph.load("y", "z")), "acted", "z")
    other = graph.build(), replace(kernels[0][1], grid=(("z", 8),), loops={})
    source = lower_kernels([kernels[0], other, kernels[1]])
    made = with_one_grids(source, [(kernels[0][0].name, "other")], [tensor.name for tensor in source.outputs])
    assert [len(part.joined) for part in made.kernels] == [2, 0]
    assert made.function == made.parts[0].function
    assert block.name == made.name
    assert made.launcher.count("_kernel[") == 2


def _rejected(*kernels: KernelSource) -> str:
    with pytest.raises(Rejected) as error:
        one_grid("both", kernels)
    return str(error.value)


def test_what_is_no_one_launch() -> None:
    parts = case("norms").source.joined
    renamed = replace(parts[1], inputs=(replace(parts[1].inputs[0], name=parts[0].inputs[0].name),))
    assert "is two tensors" in _rejected(parts[0], renamed)
    resized = replace(parts[1], sizes={**parts[1].sizes, next(iter(parts[0].sizes)): 7})
    assert "has two sizes" in _rejected(parts[0], resized)
    assert "number of warps" in _rejected(parts[0], replace(parts[1], num_warps=8))
    assert "the same name" in _rejected(parts[0], parts[0])
    assert "a size that varies" in _rejected(parts[0], replace(parts[1], least={"m": 1}))
    assert "is not one generated kernel" in _rejected(parts[0], case("grids").source)
    library = lower_kernels(normed()[1]).parts[1]
    assert "is not one generated kernel" in _rejected(parts[0], library)
    one, two = lower_kernels(SPLIT["rms_norm_linear_tail"][1]).parts
    two = replace(two, num_warps=one.num_warps, num_stages=one.num_stages)
    assert "what another one of the launch writes" in _rejected(one, two)
    changed = replace(parts[1], jit=parts[1].jit.replace("tl.program_id(0)", "tl.program_id(0) * 1"))
    assert "in another way" in _rejected(parts[0], changed)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("name", ["projections", "grids"])
def test_it_needs_no_more_than_its_parts(name: str) -> None:
    """Shared memory is that of the part that needs most."""
    one = case(name).source
    whole = compile_for(one, 90)
    assert whole.shared_bytes <= max(compile_for(part, 90).shared_bytes for part in one.joined)
    assert not whole.spilled


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
def test_triton_knows_of_no_global_but_its_functions(tmp_path: Path) -> None:
    """Kernel modules launch a kernel without Triton's binder only then (edit/module/launch.py)."""
    path = tmp_path / "kernels.py"
    path.write_text(case("projections").source.standalone())
    spec = spec_from_file_location("kernels_side_by_side", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.q_kernel.cache_key != module.q_part.cache_key
    assert not module.q_kernel.used_global_vals
