"""Kernels that start while the kernel before them ends: their text, which runs, compiles and keeps its rules."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.early import STARTS_NEXT, WAIT, overlapped
from mugraph.codegen.lower import lower, lower_kernels
from mugraph.codegen.prefetch import ASM
from mugraph.ir.kernel import KernelSource
from mugraph.sizes.text import text_checked
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from syrupy.assertion import SnapshotAssertion

from tests.engine.codegen.cases import CASES as ONE
from tests.engine.codegen.cases import REAL_SIZES as WHOLE
from tests.engine.codegen.goldens import PythonFile
from tests.engine.codegen.norm_and_product import normed
from tests.engine.codegen.splits import CASES, REAL_SIZES, program_of, source

_ACCESS = re.compile(r"\b(?:ld|st|red|atom)\.global|cp\.async")


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def test_text_of_two_kernels(snapshot: SnapshotAssertion) -> None:
    text = overlapped(source("rms_norm_linear")).standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, "early", "exec")


def test_text_between_others(snapshot: SnapshotAssertion) -> None:
    """One kernel, after one of another launcher and before the next one."""
    text = overlapped(lower(*WHOLE["gated_mlp"]), after=True, before=True).standalone()
    assert text == snapshot(extension_class=PythonFile)


@pytest.mark.parametrize("name", ["attention", "attention_1_query", "rms_norm_linear_tail", "gated_mlp", "batched"])
def test_it_is_the_same_function(name: str, tester: FloatTester) -> None:
    """In Triton's interpreter, where one kernel runs after the other."""
    program, kernels = program_of(CASES[name][0]), CASES[name][1]
    for after in (False, True):
        early = overlapped(source(name), after=after, before=after)
        assert [one.early for one in early.kernels] == [after, True]
        found = tester.test_kernel(early, program)
        assert found.passed, found.reason
        text = text_checked(program, early, kernels)
        assert text.passed, text.reason


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_that_does_not_wait_is_refused(name: str) -> None:
    program, kernels = program_of(CASES[name][0]), CASES[name][1]
    early = overlapped(source(name))
    assert early.jit.count(WAIT) == 1
    for text in (early.jit.replace(f"    {WAIT}\n", ""), _moved(early.jit, WAIT)):
        assert text != early.jit
        refused = text_checked(program, replace(early, jit=text), kernels)
        assert not refused.passed
        assert "is launched before the kernel before it has ended, and " in (refused.reason or "")


def _moved(jit: str, line: str) -> str:
    """To the end of its kernel."""
    before, after = jit.split(f"    {line}\n")
    return f"{before}{after.rstrip()}\n    {line}\n"


def asking(name: str) -> KernelSource:
    source = lower(*WHOLE[name])
    return overlapped(source, after=True, form="asking", weights=[one.name for one in source.inputs])


def test_text_that_asks_for_weights(snapshot: SnapshotAssertion) -> None:
    text = asking("gated_mlp").standalone()
    assert text == snapshot(extension_class=PythonFile)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", ["gated_mlp", "rms_norm_linear"])
def test_what_is_asked_for_is_the_tensors(name: str) -> None:
    """At its full size, with neighbours that come at once asked for once."""
    source, program = asking(name), program_of(WHOLE[name][0])
    assert text_checked(program, source, [WHOLE[name]]).passed
    beyond = re.sub(r"static_range\(0, 2 \* (\w+)", r"static_range(0, 1000 * \1", source.jit)
    assert beyond != source.jit
    found = text_checked(program, replace(source, jit=beyond), [WHOLE[name]])
    assert "asks for" in (found.reason or "")
    other = replace(source, jit=source.jit.replace(ASM, "st.global.b32 [$1], $0;"))
    assert "but where it asks for memory" in (text_checked(program, other, [WHOLE[name]]).reason or "")


@pytest.mark.parametrize(
    "name", ["rms_norm_linear_1_row", "rms_norm_linear_small_tiles", "inner_products", "lora_rank_8_tail"]
)
def test_what_is_asked_for_changes_nothing(name: str, tester: FloatTester) -> None:
    source, program = lower(*ONE[name]), program_of(ONE[name][0])
    early = overlapped(source, after=True, form="asking", weights=[one.name for one in source.inputs])
    found = tester.test_kernel(early, program)
    assert found.passed, found.reason
    text = text_checked(program, early, [ONE[name]])
    assert text.passed, text.reason


def test_what_is_masked_is_not_asked_for() -> None:
    """The tail of a tensor may lie outside of it."""
    source = lower(*ONE["lora_rank_8_tail"])
    early = overlapped(source, after=True, form="asking", weights=[one.name for one in source.inputs])
    loads = [
        node
        for node in ast.walk(ast.parse(source.jit))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load"
    ]
    masked = [one for one in loads if any(given.arg == "mask" for given in one.keywords)]
    assert masked
    assert early.jit.count(ASM) <= len(loads) - len(masked)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
def test_the_compiler_asks_before_the_wait() -> None:
    """A few times a thread: a row of a tile is neighbours."""
    ptx = re.sub(r"//.*", "", compile_for(asking("gated_mlp"), 90).ptx.partition(".section")[0])
    assert 0 < ptx.count("prefetch.global.L2") <= 16
    assert ptx.rindex("prefetch.global.L2") < ptx.index("griddepcontrol.wait")


def test_alone_it_stays_as_it_is() -> None:
    alone = lower(*ONE["tile_sum"])
    assert overlapped(alone) == alone


def test_a_kernel_of_pytorchs_does_not_wait() -> None:
    """So nothing says that it may start."""
    source = lower_kernels(normed()[1])
    assert [part.library is not None for part in source.parts] == [False, True]
    assert overlapped(source) == source
    early = overlapped(source, after=True, before=True)
    assert [part.early for part in early.parts] == [True, False]
    assert (early.jit.count(WAIT), early.jit.count(STARTS_NEXT)) == (1, 0)
    assert early.launcher.count("launch_pdl=True") == 1


def test_what_the_launcher_is_given_is_read_before_where_it_is_there() -> None:
    """The second of two kernels that share nothing reads all it needs, and waits before it stores."""
    one, two = lower(*ONE["tile_sum"]), lower(*ONE["activations"])
    both = lower_kernels([ONE["tile_sum"], ONE["activations"]])
    assert [part.name for part in both.parts] == [one.name, two.name]
    early, late = overlapped(both), overlapped(both, after=True)
    for found in (early, late):
        text = found.parts[1].jit
        assert (text.index(WAIT) > text.index("tl.load")) == (found is early)
        assert text.index(WAIT) < text.index("tl.store")


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.parametrize("name", REAL_SIZES)
def test_the_compiler_leaves_the_wait_before_all_accesses(name: str, target: str) -> None:
    device = TARGETS[target]
    assert device.launches_early
    early = overlapped(lower_kernels(REAL_SIZES[name]), after=True)
    for part, ends in zip(early.parts, (False, True), strict=True):
        ptx = compile_for(part, device.capability).ptx
        code = re.sub(r"//.*", "", ptx.partition(".section")[0])
        assert code.count("griddepcontrol.wait") == 1
        assert code.count("griddepcontrol.launch_dependents") == (not ends)
        first = _ACCESS.search(code)
        assert first is not None
        assert code.index("griddepcontrol.wait") < first.start()


def test_which_devices_can() -> None:
    can = {name for name, target in TARGETS.items() if target.launches_early}
    assert {"h100", "h200", "sm_90", "sm_100"} <= can
    assert not can & {"a100", "sm_80", "cpu"}
