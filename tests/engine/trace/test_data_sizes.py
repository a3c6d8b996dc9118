"""Sizes that come of data, as how many tokens are routed to an expert: known as such while a program is traced, and
ranges of what is computed with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.ranges import Product
from mugraph.ir.region import Region, Trace

from tests.engine.trace.partition import Regions

EXPERT = """
class Expert(nn.Module):
    def __init__(self, wide, inner):
        super().__init__()
        self.up, self.gate = nn.Linear(wide, inner, bias=False), nn.Linear(wide, inner, bias=False)
        self.down = nn.Linear(inner, wide, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Routed(nn.Module):
    def __init__(self, wide=32, inner=48, experts=4, each=2):
        super().__init__()
        self.router, self.each = nn.Linear(wide, experts, bias=False), each
        self.experts = nn.ModuleList([Expert(wide, inner) for _ in range(experts)])

    # mugraph: x=f32[24, 32]
    def forward(self, x):
        probabilities = torch.softmax(self.router(x), dim=-1)
        weights, chosen = torch.topk(probabilities, self.each, dim=-1)
        out = torch.zeros_like(x)
{body}
        return out
"""
WHERE = """\
        for number, expert in enumerate(self.experts):
            token, nth = torch.where(chosen == number)
            out[token] += weights[token, nth, None] * expert(x[token])
"""
ONE_HOT = """\
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for number in range(len(self.experts)):
            nth, token = torch.where(mask[number])
            rows = x[None, token].reshape(-1, x.shape[1])
            found = self.experts[number](rows) * weights[token, nth, None]
            out.index_add_(0, token, found.to(x.dtype))
"""
HIT = """\
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for number in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            expert = self.experts[number]
            nth, token = torch.where(mask[number].squeeze(0))
            out.index_add_(0, token, expert(x[token]) * weights[token, nth, None])
"""
COUNTED = """\
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        for number, expert in enumerate(self.experts):
            if counts[number] == 0:
                continue
            token, nth = torch.where(chosen == number)
            out[token] += expert(x[token]) * weights[token, nth, None]
"""
MASK = """\
        for number, expert in enumerate(self.experts):
            here = (chosen == number).any(-1)
            weight = (weights * (chosen == number)).sum(-1)[here]
            out[here] += expert(x[here]) * weight[:, None]
"""
SORTED = """\
        order = chosen.view(-1).argsort()
        rows = x[order // self.each]
        start, done = 0, []
        for expert, count in zip(self.experts, chosen.view(-1).bincount(minlength=4).tolist()):
            if count == 0:
                continue
            part = rows[start : start + count]
            done.append(expert(part))
            start += count
        print(len(done))
"""
SUMMED = """\
        ones = chosen.new_zeros((x.shape[0], len(self.experts))).scatter_(1, chosen, 1)
        counts = ones.sum(dim=0).cpu().numpy()
        rows = x[chosen.view(-1).argsort() // self.each]
        start, done = 0, []
        for number, count in enumerate(counts):
            end = start + count
            if count == 0:
                continue
            part = rows[start:end]
            done.append(self.experts[number](part))
            start = end
        print(len(done))
"""


def expert_of(trace: Trace) -> Region:
    """The one region that multiplies by the experts' weights."""
    (found,) = [r for r in trace.regions if any("down.weight" in live_in.expression for live_in in r.live_ins)]
    return found


@pytest.mark.parametrize(
    ("body", "most"),
    [
        pytest.param(WHERE, 48, id="where"),
        pytest.param(ONE_HOT, 48, id="one_hot", marks=pytest.mark.more),
        pytest.param(HIT, 48, id="hit"),
        pytest.param(COUNTED, 48, id="counted", marks=pytest.mark.more),
        pytest.param(MASK, 24, id="mask", marks=pytest.mark.more),
        pytest.param(SORTED, 48, id="sorted"),
        pytest.param(SUMMED, 24, id="summed", marks=pytest.mark.more),
    ],
)
def test_rows_of_an_expert_are_a_range(body: str, most: int, trace: Callable[..., Trace]) -> None:
    found = trace(EXPERT.format(body=body))
    assert found.errors == ()
    region = expert_of(found)
    assert region.status is None, region.reason
    assert region.dynamic is not None
    size = region.dynamic.range
    assert (size.least, size.largest) == (1, most)
    assert region.dynamic.others == ()
    assert f"in line {1 + found_line(body)}" in size.of_data
    assert {Product(1, (size.name,))} == {
        of for live_in in region.live_ins for of in region.dynamic.shapes.get(live_in.value, ()) if of
    }
    products = [call for call in region.calls if call.target == "torch.nn.functional.linear"]
    assert all(region.values[call.outputs[0]].shape[0] == most for call in products)
    assert not any("torch.where" in call.target for call in region.calls)


def test_rows_of_an_expert_in_the_inference_mode(trace: Callable[..., Trace]) -> None:
    """A mask that is written to selects others after it, although its tensor keeps no count of writes."""
    chosen = "            token, nth = torch.where(chosen == number)\n"
    twice = """\
            mask = chosen == number
            token, nth = torch.where(mask)
            mask[0] = False
            later, _ = torch.where(mask)
            out[later] += 1.0
"""
    body = WHERE.replace(chosen, twice)
    forward = "    # mugraph: x=f32[24, 32]\n"
    program = EXPERT.format(body=body).replace(forward, f"{forward}    @torch.inference_mode()\n")
    found = trace(program)
    assert found.errors == ()
    region = expert_of(found)
    assert region.status is None, region.reason
    assert region.dynamic is not None
    assert f"in line {2 + found_line(body)}" in region.dynamic.range.of_data


def found_line(body: str) -> int:
    """Where what selects rows, or reads the counts, stands in the program."""
    before = EXPERT.partition("{body}")[0].count("\n") + 5  # the prelude of the test's program
    words = ("torch.where", "(-1)[here]", ".tolist()", ".numpy()")
    lines = body.splitlines()
    at = next(at for word in words for at, line in enumerate(lines) if word in line)
    return before + at


def test_weights_that_a_number_of_data_names(trace: Callable[..., Trace]) -> None:
    """As transformers 5 keeps experts: one tensor of all, of which each step of the loop takes one."""
    found = trace(
        """
        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate_up = nn.Parameter(torch.empty(8, 2 * 14336, 4096))
                self.down = nn.Parameter(torch.empty(8, 4096, 14336))

            # mugraph: x=f16[32, 4096], chosen=i64[32, 2], weights=f16[32, 2]
            def forward(self, x, chosen, weights):
                out = torch.zeros_like(x)
                mask = F.one_hot(chosen, num_classes=8).permute(2, 1, 0)
                for number in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
                    number = number[0]
                    if number == 8:
                        continue
                    nth, token = torch.where(mask[number])
                    gate, up = F.linear(x[token], self.gate_up[number]).chunk(2, dim=-1)
                    found = F.linear(F.silu(gate) * up, self.down[number])
                    out.index_add_(0, token, (found * weights[token, nth, None]).to(out.dtype))
                return out
        """
    )
    (region,) = [one for one in found.regions if any(named.expression == "self.down" for named in one.live_ins)]
    assert region.dynamic is not None, region.reason
    assert region.dynamic.range.largest == 64
    assert "number" in [live_in.expression for live_in in region.live_ins]


def test_weights_of_every_size_are_traced_without_numbers(trace: Callable[..., Trace]) -> None:
    text = EXPERT.format(body=WHERE).replace("wide=32, inner=48, experts=4", "wide=4096, inner=14336, experts=8")
    region = expert_of(trace(text.replace("f32[24, 32]", "f32[24, 4096]")))
    assert region.dynamic is not None, region.reason


def test_tokens_may_be_a_range_as_well(trace: Callable[..., Trace]) -> None:
    region = expert_of(trace(EXPERT.format(body=WHERE).replace("x=f32[24, 32]", "t=1..24, x=f32[t, 32]")))
    assert region.dynamic is not None, region.reason
    assert {one.name: one.largest for one in region.dynamic.ranges} == {"t": 24, "rows": 48}


def test_what_is_done_with_some_numbers_of_rows_only_is_said(trace: Callable[..., Trace]) -> None:
    body = WHERE.replace(
        "            out[token]",
        "            if token.shape[0] > 20:\n                x = torch.relu(x)\n            out[token]",
    )
    region = expert_of(trace(EXPERT.format(body=body)))
    assert region.status == "unsupported"
    assert region.reason is not None
    assert "(as many as torch.where in line" in region.reason
    assert "cannot have a range: " in region.reason


def test_rows_that_a_mask_selects_are_no_part_of_a_region(trace: Callable[..., Trace]) -> None:
    found = trace(
        """
        # mugraph: x=f32[40, 16], w=f32[16, 16]
        def kept(x, w):
            rows = x[x[:, 0] > 0]
            return torch.relu(rows @ w + 1.0) * rows
        """
    )
    (region,) = found.regions
    assert region.dynamic is not None, region.reason
    assert [live_in.expression for live_in in region.live_ins] == ["rows", "w"]
    assert any("returns as many as its data say" in one for one in found.notices)


def test_two_masks_are_two_sizes_and_one_mask_is_one(trace: Callable[..., Trace]) -> None:
    found = trace(
        """
        # mugraph: x=f32[40, 16], y=f32[40, 16], w=f32[16, 16]
        def both(x, y, w):
            here = x[:, 0] > 0
            first = x[here]
            second = y[here]
            third = y[y[:, 0] > 0]
            return torch.relu(first @ w) * second, torch.relu(third @ w)
        """
    )
    ranges = {one for region in found.regions if region.dynamic is not None for one in region.dynamic.ranges}
    assert {(one.name, one.largest) for one in ranges} == {("rows", 40), ("rows_2", 40)}, found.regions


def test_what_is_found_in_a_constant_is_no_size_of_data(trace: Callable[..., Trace]) -> None:
    found = trace(
        """
        # mugraph: x=f32[40, 16], w=f32[16, 16]
        def fixed(x, w):
            places = torch.nonzero(torch.arange(40) < 8)[:, 0]
            return torch.relu(x[places] @ w)
        """
    )
    (region,) = found.regions
    assert (region.status, region.dynamic) == (None, None), region.reason
    assert any(info.shape == (8, 16) for info in region.values.values())


def test_a_size_that_only_numbers_say_is_not_offered(trace: Callable[..., Trace]) -> None:
    found = trace(
        """
        # mugraph: x=f32[96, 16], w=f32[16, 16]
        def first_ones(x, w):
            n = int((x[:, 0] > 0).float().sum())
            part = x[:n]
            print(end="")
            return torch.relu(part @ w)
        """
    )
    reasons = [region.reason for region in found.regions if region.status == "unsupported"]
    assert len(reasons) == 1
    assert "a size of it comes of data: part is [" in str(reasons[0])


def test_numbers_that_change_no_size_are_no_reason(trace: Callable[..., Trace]) -> None:
    found = trace(
        """
        # mugraph: x=f32[96, 16], w=f32[16, 16]
        def scaled(x, w):
            if float(x.abs().max()) < 100:
                print(end="")
            return torch.relu(x @ w)
        """
    )
    assert [region.status for region in found.regions] == [None, None]


@pytest.mark.parametrize("number", ["y.max().item()", "float(y.sum())", "(y.mean() * 2).item()"])
def test_a_number_of_data_beside_a_size_of_data_is_no_power_of_sizes(number: str, trace: Callable[..., Trace]) -> None:
    found = trace(f"""
# mugraph: x=f32[3, 4, 8]
def f(x):
    v = torch.tanh(x) * 2
    y = v[v > 0]
    return y.exp() * {number}
""")
    assert found.errors == ()
    assert any(region.function == "f" for region in found.regions)


@pytest.mark.parametrize("called", ["F.one_hot(ids)", "F.one_hot(ids, -1)", "F.one_hot(ids, num_classes=-1)"])
def test_as_many_classes_as_data_say_are_in_no_region(called: str, regions: Regions) -> None:
    found = regions(f"""
        # mugraph: ids=i64[5], w=f32[5, 5]
        def classes(ids, w):
            x = {called}.float() * 0.5
            return torch.tanh(w @ x) + x.mean(-1, keepdim=True)
        """)
    for region in found:
        assert "one_hot" not in region.text


@pytest.mark.parametrize(
    "stored",
    ["y[y < 0] *= 0.5", "y[x > 0] = y[x > 0] * 2", "m = x > 0; y[m] = x[m]", "y[x[:, 0] > 0, 1] = x[x[:, 0] > 0, 2]"],
)
@pytest.mark.parametrize("scaled", ["1", "float(y.abs().max() > 1)"])
def test_rows_are_stored_where_a_mask_selects(stored: str, scaled: str, regions: Regions) -> None:
    """What is stored has as many rows as the mask is taken to select."""
    found = regions(f"""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def masked(x, w):
            y = torch.tanh(x @ w) + x
            {stored}
            return (y * {scaled}).softmax(-1)
        """)
    assert found
