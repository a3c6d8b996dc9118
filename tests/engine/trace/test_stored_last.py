"""Functions that write to what they are given: the writes are a part of the region, which makes them last."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from mugraph.codegen.plain import region_source
from mugraph.codegen.written_at_once import written_at_once
from mugraph.ir.calls import Ref
from mugraph.ir.region import Region
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.regions.replay import replay

from tests.engine.trace.partition import Regions, ins, only, outs

DATA = "Tensor.data.__get__"
HEAD = """
# mugraph: a=f32[6, 8], b=f32[6, 8], c=f32[6, 8]
@torch.no_grad()
def {name}(a, b, c):
"""
WHOLE: Mapping[str, tuple[str, ...]] = {
    "a chain": ("a.mul_(0.5).add_(b, alpha=0.25)",),
    "read before and after": ("old = a * 2", "a.add_(b)", "c.mul_(0.9).add_(a, alpha=0.1)", "b.sub_(old)"),
    "by its data": ("a.data.mul_(0.5)", "d = a.data", "d.add_(c)", "a.add_(b)"),
    "by its data alone": ("a.data.mul_(0.5).sub_(b)",),
    "by another name of the same": ("d = a.detach()", "d.lerp_(b, 0.3)", "c.add_(a)", "a.div_(2.0)"),
    "by operators": ("a -= 0.1 * b", "c *= 0.9", "c += a"),
    "and returns another": ("a.addcmul_(b, b, value=0.5)", "return a.abs().sqrt() + c"),
    "and returns it": ("a.addcdiv_(b, c.abs().add_(1.0), value=-0.5)", "return a, b * 2.0"),
    "beside a copy": ("b.mul_(0.5).abs_()", "a.copy_(b)", "c.add_(a).mul_(2.0)"),
    "in another function": ("def step(t, by):", "    t.mul_(0.9).add_(by)", "step(a, b)", "step(c, a)"),
}  # fmt: skip
REFUSED: Mapping[str, tuple[str, ...]] = {
    "through a part": ("a[:3].mul_(2.0)", "c.add_(a).mul_(3.0)"),
    "read through a part": ("first = a[0]", "a.mul_(0.5).add_(b)", "c.add_(first).mul_(2.0)"),
    "returned under another name": ("d = a.detach()", "a.mul_(2.0).add_(b)", "return d"),
    "the other way round": ("d = a.T", "a.mul_(2.0).add_(b)", "return d.exp() * 2"),
}  # fmt: skip


def text_of(name: str, lines: tuple[str, ...]) -> str:
    return HEAD.format(name=name.replace(" ", "_")) + "".join(f"    {line}\n" for line in lines)


def eager(text: str, name: str, given: list[torch.Tensor]) -> object:
    space: dict[str, object] = {"torch": torch}
    exec(compile(text, name, "exec"), space)
    function = space[name]
    assert callable(function)
    return function(*given)


def drawn() -> dict[str, torch.Tensor]:
    return {name: torch.randn(6, 8, dtype=torch.float64) for name in "abc"}


@pytest.mark.parametrize("name", WHOLE)
def test_all_of_it_is_one_region(regions: Regions, name: str) -> None:
    text = text_of(name, WHOLE[name])
    region = only([one for one in regions(text) if one.function == name.replace(" ", "_")])
    assert region.stored
    assert outs(region) == ["return"] * WHOLE[name][-1].startswith("return") * (1 + (name == "and returns it"))
    ours, theirs = drawn(), {}
    theirs = {key: tensor.clone() for key, tensor in ours.items()}
    replay(region.calls, {live.value: ours[live.expression] for live in region.live_ins})
    eager(text, region.function, [*theirs.values()])
    for key in ours:
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-14, atol=1e-14)
        assert (ours[key]._version > 0) == (theirs[key]._version > 0)  # as autograd asks


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_stored_is_stored_once_and_last(regions: Regions, name: str) -> None:
    (region,) = regions(text_of(name, WHOLE[name]))
    number = len(region.stored)
    last = [call for call in region.calls if call.target != DATA][-number:]
    assert [call.target for call in last] == ["Tensor.copy_"] * number
    assert {call.target for call in region.calls if call.target.endswith("_")} <= {"Tensor.copy_", DATA}


@pytest.mark.parametrize("name", REFUSED)
def test_what_shares_its_memory_otherwise_ends_it(trace, name: str) -> None:
    found = trace(text_of(name, REFUSED[name]), check=True)
    assert found.errors == ()
    whole = [one for one in found.regions if len(one.text.splitlines()) == len(REFUSED[name])]
    assert whole == []
    for region in found.regions:  # parts that are regions are so in their own right
        assert region.status is None


def test_the_code_that_it_is_timed_beside_copies_nothing(regions: Regions) -> None:
    (region,) = regions(text_of("step", ("c.mul_(0.9).add_(b)", "a.add_(c, alpha=-0.1)")))
    assert region_source(written_at_once(region)).splitlines()[-4:] == [
        "    v3 = v0.mul_(0.9)",
        "    v4 = v3.add_(v1)",
        "    v5 = v2.add_(v4, alpha=-0.1)",
        "    return",
    ]
    (read,) = regions(text_of("read", ("a.add_(b).mul_(c)", "b.copy_(a)", "c.sub_(b).exp_()")))
    assert "copy_" in region_source(written_at_once(read))  # the code's own


def test_its_names_survive_the_way_to_the_engine(trace) -> None:
    found = trace(text_of("step", ("a.mul_(0.9).add_(b)",)))
    again = trace_from_json(trace_to_json(found))
    assert again.regions == found.regions
    assert [stored(region) for region in again.regions] == [["a"]]


def stored(region: Region) -> list[str]:
    return [live.expression for live in region.live_ins if live.value in region.stored]


LOOP = """
# mugraph: p=f32[6, 8], g=f32[6, 8]
def entry(p, g):
    step([p, p.new_zeros(5)], [g, p.new_ones(5)], [torch.zeros(6, 8), torch.zeros(5)])


@torch.no_grad()
def step(params, grads, moments):
    for p, g, m in zip(params, grads, moments):
        m.mul_(0.9).add_(g)
        p.add_(m, alpha=-0.1)
"""


def test_a_loop_over_parameters_of_several_shapes(regions: Regions) -> None:
    found = [one for one in regions(LOOP) if one.function == "step"]
    assert {region.values[region.live_ins[0].value].shape for region in found} == {(6, 8), (5,)}
    for region in found:
        assert sorted(ins(region)) == ["g", "m", "p"]
        assert sorted(stored(region)) == ["m", "p"]
        assert outs(region) == []


GRADIENT = """
# mugraph: x=f32[6, 8], w=f32[6, 8]
def made(x, w):
    y = x * w
    w.data.mul_(0.5).add_(1.0)
    return y + w
"""


def test_a_write_that_is_not_counted_is_not_counted_after_it(regions: Regions) -> None:
    (region,) = regions(GRADIENT)
    copy = next(call for call in region.calls if call.target == "Tensor.copy_")
    data = next(call for call in region.calls if call.target == DATA)
    assert copy.args[0] == Ref(data.outputs[0])


@pytest.mark.parametrize("turned", ["a.unsqueeze_(0)", "a.t_()", "b.squeeze_()"])
def test_an_argument_that_is_given_another_shape_is_not_stored_last(turned: str, regions: Regions) -> None:
    found = regions(f"""
        # mugraph: a=f32[6, 8], b=f32[1, 6]
        def shaped(a, b):
            y = torch.tanh(a) + a.mean(-1, keepdim=True)
            {turned}
            return y.softmax(-1)
        """)
    assert found
    for region in found:
        assert turned not in region.text
        assert all(len(info.shape) == len(info.strides) for info in region.values.values())
