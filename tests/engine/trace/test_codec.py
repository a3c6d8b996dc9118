"""Traces survive the trip through JSON exactly."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.region import Argument, Call, Named, Position, Range, Ref, Region, Symbol, TensorInfo, Trace
from mugraph.trace.codec import trace_from_json, trace_to_json

WHERE = Range(Position(1, 2), Position(3, 4))

scalars = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text()
leaves: st.SearchStrategy[Argument] = (
    scalars | st.builds(Ref, st.integers(0, 99)) | st.builds(Symbol, st.sampled_from(["torch.float32", "device"]))
)
bounds = st.none() | st.integers(-9, 9) | st.builds(Ref, st.integers(0, 9))
arguments: st.SearchStrategy[Argument] = st.recursive(
    leaves | st.builds(slice, bounds, bounds, bounds), lambda inner: st.lists(inner, max_size=3).map(tuple)
)


def round_trip(*args: Argument, **kwargs: Argument) -> Call:
    region = Region(
        "f", WHERE, "expression", "x", (Named("x", 0),), (Named("", 1),),
        (Call("Tensor.view", args, kwargs, (1,), WHERE),),
        {0: TensorInfo((2, 3), (3, 1), "f16"), 1: TensorInfo((), (), "bool", "cuda")}, ("self.eps == 1e-06",), ("x",),
    )  # fmt: skip
    trace = Trace("f.py", (region,), ("an error",), 3, {"Tensor.item": 2})
    back = trace_from_json(trace_to_json(trace))
    assert (back.path, back.errors, back.operators, back.barriers) == ("f.py", ("an error",), 3, {"Tensor.item": 2})
    assert back.regions[0].values == region.values
    assert back.regions[0].live_ins == region.live_ins
    return back.regions[0].calls[0]


@given(st.lists(arguments, max_size=4).map(tuple), st.dictionaries(st.sampled_from(["dim", "p"]), arguments))
def test_arguments(args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
    back = round_trip(*args, **kwargs)
    assert repr(back.args) == repr(args)  # repr tells 1 from 1.0 and True
    assert repr(dict(back.kwargs)) == repr(kwargs)


def test_numbers_that_json_has_not() -> None:
    inf, minus, nan = round_trip(math.inf, -math.inf, math.nan).args
    assert (inf, minus) == (math.inf, -math.inf)
    assert isinstance(nan, float)
    assert math.isnan(nan)


def test_other_bytes_are_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        trace_from_json(b'{"path": 3}')
