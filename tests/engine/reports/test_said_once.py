"""Code that is called with several sizes: what is said of all of them is said once."""

from __future__ import annotations

from dataclasses import replace

import torch
from mugraph.events import RegionResult
from mugraph.ir.region import Position, Range
from mugraph.reports.said_once import said_once

from tests.engine.ops.harness import record

REGION = record(lambda x: x + 1, {"x": torch.ones(2, 2)})
ONE = RegionResult(REGION, "no-gain", "PyTorch runs it as 1 kernel, estimated at 2.9 µs")


def test_reasons_that_differ_in_numbers_are_said_once() -> None:
    other = replace(ONE, reason="PyTorch runs it as 1 kernel, estimated at 12 µs")
    assert said_once([ONE, other, other], [2, 0, 1]) == [(2, 2)]


def test_other_reasons_and_places_and_statuses_are_said() -> None:
    elsewhere = replace(REGION, range=Range(Position(7, 0), Position(7, 9)))
    results = [
        ONE,
        replace(ONE, reason="the seconds for the file were over"),
        replace(ONE, region=elsewhere),
        replace(ONE, status="unsupported"),
        replace(ONE, reason=None),
        replace(ONE, reason=None),
    ]
    assert said_once(results, range(6)) == [(number, 0) for number in range(6)]
