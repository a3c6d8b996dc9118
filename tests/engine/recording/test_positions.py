"""A decoding loop over a cache of fixed places, of which a whole number says how many are filled: the number is a size
with a range, and one kernel takes the calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.recording.memory import Recorded, recorded
from mugraph.recording.runs import Runs
from mugraph.recording.size_ranges import ranged, several
from mugraph.recording.ways import with_way
from mugraph.recording.withheld import Bindings, fitted
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.syntax.shapes import Expression, parse_description, parse_spec, spec_text
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units

from tests.support.in_folder import mugraph_in

STEP = """\
import torch


def attend(query, keys, values, filled):
    weights = torch.softmax(query @ keys[:, :filled].mT * 0.25, dim=-1)
    return weights @ values[:, :filled]


class Cached(torch.nn.Module):
    def __init__(self, places):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, places, 32))
        self.register_buffer("values", torch.zeros(2, places, 16))

    def forward(self, query, key, value, start):
        self.keys[:, start : start + 1] = key
        self.values[:, start : start + 1] = value
        weights = torch.softmax(query @ self.keys[:, : start + 1].mT * 0.25, dim=-1)
        return weights @ self.values[:, : start + 1]
"""
MAIN = """\
import torch
from step import Cached, attend
from tests.public.drivers.common import kernels_here

kernels_here()
torch.manual_seed(0)
with torch.no_grad():
    keys, values, cached = torch.randn(2, 64, 32), torch.randn(2, 64, 16), Cached and Cached(64).eval()
    for start in STEPS:
        query, key, value = torch.randn(2, 1, 32), keys[:, start : start + 1], values[:, start : start + 1]
        want = torch.softmax(query @ keys[:, : start + 1].mT * 0.25, -1) @ values[:, : start + 1]
        assert torch.allclose(attend(query, keys, values, start + 1), want, atol=1e-5), start
        if cached is not None:
            assert torch.allclose(cached(query, key.clone(), value.clone(), start), want, atol=1e-5), start
"""


def calls(*numbers: int | None, shapes: tuple[str, ...] = (), **spans: tuple[int, int]) -> list[Recorded]:
    """Of a tensor `x` and a whole number `n`."""
    texts = shapes or ("f32[1, 8]",) * len(numbers)
    return [
        Recorded(
            {"x": text, "n": str(number or 9)},
            strides={},
            calls=4,
            numbers={"n": number},
            spans=spans if number is None else {},
        )
        for number, text in zip(numbers, texts, strict=True)
    ]


@pytest.mark.parametrize(
    ("sets", "comment"),
    [
        (calls(3, 8, 5), "# mugraph: n=3..8, x=f32[1, 8]"),
        (calls(3, None, n=(4, 40)), "# mugraph: n=3..40, x=f32[1, 8]"),
        (calls(None, n=(4, 40)), "# mugraph: n=4..40, x=f32[1, 8]"),
        (calls(None), None),  # an older recording does not say which
        (calls(0, 8, 5), "# mugraph: n=5..8, x=f32[1, 8]"),  # a position of zero is left to a kernel of its own
        (calls(-1, 1), None),
        (calls(2, 4, 6, shapes=("f32[1, 8]", "f32[1, 16]", "f32[1, 24]")), "# mugraph: n=2..6, x=f32[1, 4 * n]"),
        (
            calls(7, 15, 23, shapes=("f32[1, 4]", "f32[1, 8]", "f32[1, 12]")),
            "# mugraph: t=4..12, x=f32[1, t], n=2 * t - 1",
        ),
        (calls(4, 8, 12, shapes=("f32[1, 4]", "f32[1, 8]", "f32[1, 12]")), "# mugraph: n=4..12, x=f32[1, n]"),
        (calls(4, 8, shapes=("f32[1, 4]", "f16[1, 8]")), None),
    ],
)
def test_a_number_is_a_size(sets: list[Recorded], comment: str | None) -> None:
    found = ranged(sets)
    assert (found and found.comment) == comment


def test_a_number_beside_another_size() -> None:
    found = several(calls(3, 3, 9, shapes=("f32[2, 8]", "f32[1, 8]", "f32[2, 8]")))
    assert found is not None
    assert found.comment == "# mugraph: t=1..2, m=3..9, x=f32[t, 8], n=m"
    said = parse_description(list(found.arguments and [found.comment.removeprefix("# mugraph: ")]))
    assert said.arguments["n"] == Expression("9")


def test_the_span_of_a_number_with_many_values(tmp_path: Path, record: Callable[..., object]) -> None:
    path = tmp_path / "scores.py"
    path.write_text(
        "import torch\n\ndef scores(x, flag, n=0):\n    return x.exp()\n\n"
        "for n in range(100):\n    scores(torch.ones(4), True, 3 * n + 1)\n"
    )
    record(sys.executable, "scores.py")
    [many] = [one for one in recorded(path)["scores"] if one.numbers["n"] is None]
    assert many.spans == {"n": (3 * 8 + 1, 3 * 99 + 1)}


@pytest.mark.parametrize("text", ["f16[4, 8]", "c64[1, 32]", "i64", "(f32[2], None)", "(f32[2],)", "3", "'sum'"])
def test_an_argument_as_text_is_read_again(text: str) -> None:
    assert spec_text(parse_spec(text)) == text


def test_a_trace_keeps_what_it_says_of_numbers(tmp_path: Path) -> None:
    region = region_of(tmp_path, ATTEND)
    assert region.dynamic is not None
    assert region.dynamic.arguments["n"].ends(region.dynamic.ranges) == (1, 40)
    kept = Trace("code.py", (replace(region, alike_for={"n": (1, 40)}),))
    (again,) = trace_from_json(trace_to_json(kept)).regions
    assert again == region
    assert again.alike_for == {"n": (1, 40)}


def region_of(tmp_path: Path, code: str) -> Region:
    path = tmp_path / "code.py"
    path.write_text("import torch\n\n\n" + code)
    trace = trace_file(path)
    assert not trace.errors
    [region] = trace.regions
    return region


ATTEND = """\
# mugraph: n=1..40, q=f16[2, 1, 64], keys=f16[2, 64, 64], values=f16[2, 64, 32]
def attend(q, keys, values, n):
    return torch.softmax(q @ keys[:, :n].mT, -1) @ values[:, :n]
"""
LOGARITHM = "import math\n" + ATTEND.replace("keys[:, :n].mT,", "keys[:, :n].mT * math.log(n),")


def test_a_region_reads_the_size_of_the_number(tmp_path: Path) -> None:
    region = region_of(tmp_path, ATTEND)
    assert region.status is None
    assert region.dynamic is not None
    assert region.dynamic.words == "n = 1..40"
    assert region.guards == ("type(n) is int",)
    assert set(region.dynamic.numbers) == {"n"}


def test_a_number_that_a_tensor_has_too_is_compared_with_it(tmp_path: Path) -> None:
    region = region_of(tmp_path, ATTEND.replace("q=f16[2, 1, 64]", "q=f16[2, n, 64]"))
    assert region.dynamic is not None
    assert region.guards == ("n == q.shape[1]",)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ATTEND.replace("    return", "    if n == 17:\n        q = q * 2\n    return"), "something else with n = 17"),
        (LOGARITHM, "is given a number that is computed from"),
        (ATTEND.replace("n=1..40", "n=0..40"), "a size is at least 1"),
    ],
)  # fmt: skip
def test_a_number_that_is_more_than_a_size_is_told(tmp_path: Path, code: str, said: str) -> None:
    region = region_of(tmp_path, code)
    if region.status is None:
        _, reasons = ranged_units(region)
        assert any(said in reason for reason in reasons), reasons
    else:
        assert said in (region.reason or "")


def test_code_that_a_number_does_not_change_is_counted_for_all_its_values(
    tmp_path: Path, record: Callable[..., object]
) -> None:
    path = tmp_path / "block.py"
    text = (
        "import torch\n\n\ndef block(x, cache, start):\n    y = x + cache[:, :start].sum(1, keepdim=True)\n"
        "    return torch.softmax(y.sigmoid() * 2, -1)\n\n\n"
        "if __name__ == '__main__':\n    for start in range(1, 61):\n"
        "        block(torch.ones(2, 1, 64), torch.ones(2, 64, 64), start)\n"
    )
    path.write_text(text)
    record(sys.executable, "block.py")
    runs = Runs.of(path, text)
    trace = trace_file(path, recorded_shapes=runs.shapes, pictures=runs.pictures)
    for way in runs.ways:
        more = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
        trace = with_way(trace, more, runs.calls, text, ranged_only=bool(way.comments))
    after = [one for one in trace.regions if one.status is None and "softmax" in one.text and "cache" not in one.text]
    assert all(one.alike_for == {"start": (1, 60)} for one in after)
    whole = [one for one in trace.regions if one.dynamic is not None]
    counted = [fitted(one, runs.calls["block"], Bindings(text).before(one)).calls for one in [*after, *whole]]
    assert counted
    assert max(counted) == 60


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ("range(1, 11)", {"attend": (10, 10)}),
        pytest.param("range(21)", {"attend": (21, 21), "Cached.forward": (20, 21)}, marks=pytest.mark.more),
    ],
)
def test_its_kernels_take_the_calls(tmp_path: Path, steps: str, wanted: dict[str, tuple[int, int]]) -> None:
    text = STEP if "Cached.forward" in wanted else STEP.partition("class Cached")[0] + "Cached = None\n"
    (tmp_path / "step.py").write_text(text)
    (tmp_path / "main.py").write_text(MAIN.replace("STEPS", steps))
    mugraph = mugraph_in(tmp_path)
    program = ("--", sys.executable, "main.py")
    mugraph("record", *program)
    mugraph("optimize", "step.py", "--apply", "--json", "--no-measure", "--target", "h100", "--budget", "1")
    assert ", int)" not in (tmp_path / "step.py").read_text()
    checked = json.loads(mugraph("check", "--run", "--json", *program, TRITON_INTERPRET="1"))
    taken = {one["function"]: (one["taken"], one["calls"]) for one in checked["regions"]}
    assert taken == wanted
