"""What kernels hand to one another lies where nothing else does that is there at the same time."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.codegen.early import overlapped
from mugraph.codegen.launcher import borders, launcher_text, without_deletions
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.scratch_places import lifetimes_of, scratch_places
from mugraph.ir.kernel import KernelSource
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.sizes.text import text_checked

from tests.engine.codegen.norm_and_product import split_product


def a_kernel(name: str, sizes: dict[str, int], reads: list[str], writes: list[str]) -> KernelSource:
    """One that is launched; of its text nothing is asked here."""

    def tensor(one: str) -> Tensor:
        return Tensor(one, ((f"n_{one}",),), contiguous_strides(((f"n_{one}",),), {f"n_{one}": sizes[one]}), "f16", "")

    return KernelSource(
        name=name,
        jit=f"@triton.jit\ndef {name}_kernel():\n    pass",
        pointers=(),
        constexprs={},
        grid=(1, 1, 1),
        inputs=tuple(map(tensor, reads)),
        outputs=tuple(map(tensor, writes)),
        sizes={f"n_{one}": sizes[one] for one in (*reads, *writes)},
        num_warps=4,
        num_stages=2,
        launcher="",
    )


def a_source(sizes: dict[str, int], steps: list[tuple[list[str], list[str]]]) -> KernelSource:
    parts = [a_kernel(f"k{at}", sizes, *step) for at, step in enumerate(steps)]
    inputs, outputs = borders(parts)
    launcher = launcher_text("k0", parts)
    return replace(parts[0], inputs=inputs, outputs=outputs, launcher=launcher, parts=tuple(parts))


def chain(*elements: int) -> KernelSource:
    """x -> t0 -> t1 -> ... -> out"""
    names = ["x", *(f"t{at}" for at in range(len(elements) - 2)), "out"]
    steps = [([one], [other]) for one, other in pairwise(names)]
    return a_source(dict(zip(names, elements, strict=True)), steps)


def test_a_chain_of_four_kernels() -> None:
    source = chain(1024, 2048, 1024, 2048, 512)
    assert scratch_places(source) == {"t0": ("", 0), "t1": ("", 4096), "t2": ("", 0)}
    lines = [line.strip() for line in source.launcher.splitlines()]
    made = [line.split(" = ")[0] for line in lines if "torch.empty" in line]
    assert made == ["t0", "t1", "t2", "out"]
    assert lines.index("del t0") < next(at for at, line in enumerate(lines) if line.startswith("t2 = "))
    assert lines.index("del t1") < next(at for at, line in enumerate(lines) if line.startswith("out = "))
    assert "del t2" not in lines  # nothing is allocated after it
    assert "del " not in without_deletions(source.launcher)


def test_what_a_later_kernel_returns_has_room_before() -> None:
    assert scratch_places(chain(8, 1024, 1024, 1024)) == {"t0": ("out", 0), "t1": ("", 0)}


def test_two_kernels_share_nothing_and_are_written_as_before() -> None:
    source = chain(8, 1024, 8)
    assert scratch_places(source) == {}
    assert "del " not in source.launcher


def test_kernels_that_are_one_launch_share_nothing() -> None:
    """a and b are side by side: what one reads is there as long as what the other writes."""
    sizes = {"x": 256, "t": 256, "a": 256, "b": 256, "out": 8}
    apart = a_source(sizes, [(["x"], ["t"]), (["t"], ["a"]), (["x"], ["b"]), (["a", "b"], ["out"])])
    assert scratch_places(apart)
    one = a_kernel("beside", sizes, ["t", "x"], ["a", "b"])
    joint = replace(apart, parts=(apart.parts[0], one, apart.parts[3]))
    assert scratch_places(joint) == {}


@st.composite
def sources(draw: st.DrawFn) -> KernelSource:
    """Each kernel reads some of what was made before, the last one all that nobody has read."""
    count = draw(st.integers(2, 6))
    sizes = {"x": 8} | {f"t{at}": draw(st.sampled_from([100, 256, 1000, 4096])) for at in range(count)}
    steps: list[tuple[list[str], list[str]]] = []
    for at in range(count):
        before = [f"t{one}" for one in range(at)]
        reads = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        steps.append((reads or ["x"], [f"t{at}"]))
    unread = [name for name in sizes if not any(name in reads for reads, _ in steps[:-1]) and name != f"t{count - 1}"]
    steps[-1] = (list(dict.fromkeys([*steps[-1][0], *(one for one in unread if one != "x")])), steps[-1][1])
    return a_source(sizes, steps)


@given(sources())
def test_nothing_is_written_over_before_it_is_read(source: KernelSource) -> None:
    """By running it: each kernel writes its name into all bytes of its result."""
    places = scratch_places(source)
    scratch, results = lifetimes_of(source)
    size = {one.name: one.size for one in (*scratch, *results)}
    at = {name: (name, 0) for name in size} | places
    memory: dict[tuple[str, int], str] = {}

    def blocks(name: str) -> list[tuple[str, int]]:
        where, offset = at[name]
        return [(where, offset // 256 + one) for one in range(size[name] // 256)]

    for kernel in source.parts:
        for tensor in kernel.inputs:
            assert tensor.name == "x" or all(memory[one] == tensor.name for one in blocks(tensor.name))
        for tensor in kernel.outputs:
            memory |= dict.fromkeys(blocks(tensor.name), tensor.name)
    for one in results:
        assert all(memory[block] == one.name for block in blocks(one.name))
    if places:
        assert places.keys() == {one.name for one in scratch}
    for one, other in combinations(scratch, 2):
        if places and one.meets(other):
            assert not {*blocks(one.name)} & {*blocks(other.name)}


@pytest.mark.parametrize("early", [False, True])
def test_the_text_with_deletions_is_checked(early: bool) -> None:
    program, kernels = split_product()
    source = lower_kernels(kernels)
    source = overlapped(source) if early else source
    deleted = next(line for line in source.launcher.splitlines() if "del " in line).split("del ")[1]
    checked = text_checked(program, source, kernels)
    assert checked.passed, checked.reason
    last = source.launcher.rindex(f"{source.parts[-1].function}[")
    spoilt = source.launcher[:last] + f"torch.mul({deleted}, 2.0)\n    " + source.launcher[last:]
    refused = text_checked(program, replace(source, launcher=spoilt), kernels)
    assert not refused.passed
    assert f"{deleted} is read after it is deleted" in (refused.reason or "")
