"""The comparison of tuners: its operators, that nothing is measured twice, that it goes on where it stopped, that a
kernel that is wrong is nobody's best, and that estimates are called so."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from mugraph.dependencies import installed
from mugraph.research.tuners import __main__ as command
from mugraph.research.tuners.compare import compare
from mugraph.research.tuners.curves import curves
from mugraph.research.tuners.operators import OPERATORS
from mugraph.research.tuners.prepared import Prepared, prepared
from mugraph.research.tuners.runs import TUNERS, Compared, Comparison, Run, best_so_far, over_seeds, read, write
from mugraph.research.tuners.table import ESTIMATE, tables
from mugraph.research.tuners.times import Estimated, MeasuredTimes, OutOfTime
from mugraph.targets import TARGETS
from mugraph.tune.measure import Refused
from mugraph.tune.statistics import Summary
from mugraph.verification.float_results import FloatResult

SVG = "{http://www.w3.org/2000/svg}"
USED = [name for name in TUNERS if name != "boosted" or installed("sklearn")]
FEW = ["walk", "opevo", "random"]


@dataclass
class Machine:
    """Stands for the device. Times are of the text; kernels of eight warps are not launched, those in `wrong` are
    wrong. begins: batches that are begun before the time is over"""

    begins: int = 1 << 30
    wrong: set[str] = field(default_factory=set[str])
    compiled: list[str] = field(default_factory=list[str])
    tested: list[str] = field(default_factory=list[str])
    kept: int = 0

    def compile(self, subjects: Sequence[tuple[Any, Any]]) -> list[str | None]:
        self.compiled += [subject.source for subject, _ in subjects]
        return ["no" if "num_stages=6" in subject.source else None for subject, _ in subjects]

    def measure_kernels(
        self, kernels: Sequence[tuple[Any, Any]], rounds: int, **_: object
    ) -> Iterator[Summary | Refused]:
        for subject, _ in kernels:
            text = subject.source
            yield Refused("it hangs") if "num_warps=8" in text else Summary(20.0 + hash_of(text), 0.01, rounds)

    def test_kernel(self, kernel: Any, program: object) -> FloatResult:
        text = kernel.standalone()
        self.tested.append(text)
        return FloatResult(text not in self.wrong, "wrong" if text in self.wrong else None, 1e-4, 1e-4, "GPU")

    def keep(self) -> None:
        self.kept += 1

    def times(self) -> MeasuredTimes:
        it = cast(Any, self)
        return MeasuredTimes(it, it, it, self.keep, time.monotonic() + 1000)


def hash_of(text: str) -> float:
    return sum(text.encode()) % 997 / 100


@pytest.fixture(scope="module")
def product() -> Prepared:
    return prepared(OPERATORS[0], "f32", TARGETS["h100"], 2)


def compared(product: Prepared) -> Compared:
    return Compared(product.operator.name, product.operator.says, product.operator.flops)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)
def test_operators_have_kernels_and_their_operations_are_counted(operator: Any) -> None:
    """Each product of an operator has one multiplication and one addition for each combination of its axes."""
    ready = prepared(operator, "f16", TARGETS["h100"], 1)
    assert operator.flops == 2 * prod(ready.program.sizes.values())
    assert ready.ranked
    assert ready.space.parameters[0].values == (0,)
    kinds = {one.kind for one in ready.space.parameters if one.moves or one.name == "topology"}
    assert kinds == {"factorisation", "discrete", "categorical"}


def test_a_kernel_is_measured_once_for_all(product: Prepared) -> None:
    machine, found = Machine(), compared(product)
    compare(product, found, USED, 2, 24, machine.times(), time.monotonic() + 1000)
    assert len(machine.compiled) == len(set(machine.compiled)) == len(found.times) == found.asked
    assert {(run.tuner, run.seed) for run in found.runs} == {
        (name, seed) for name in USED for seed in range(1 if name == "walk" else 2)
    }
    assert all(run.done and 0 < len(run.us) <= 24 for run in found.runs)
    assert any(us is None for us in found.times.values())
    assert all((key in found.why) == (us is None) for key, us in found.times.items())
    before = list(machine.compiled)
    compare(product, found, USED, 2, 24, machine.times(), time.monotonic() + 1000)
    assert machine.compiled == before


def test_a_run_that_was_stopped_comes_to_the_same(product: Prepared) -> None:
    whole, parts, machine = compared(product), compared(product), Machine()
    compare(product, whole, FEW, 2, 32, Machine().times(), time.monotonic() + 1000)
    with pytest.raises(OutOfTime):
        compare(product, parts, FEW, 2, 32, machine.times(), time.monotonic() - 1)
    assert parts.runs == []
    stops = machine.times()
    stops.until = time.monotonic() - 1
    with pytest.raises(OutOfTime):
        compare(product, parts, FEW, 2, 32, stops, time.monotonic() + 1000)
    compare(product, parts, FEW[:1], 2, 32, machine.times(), time.monotonic() + 1000)
    compare(product, parts, FEW, 2, 32, machine.times(), time.monotonic() + 1000)
    assert len(machine.compiled) == len(set(machine.compiled))

    def rows(found: Compared) -> list[Run]:
        return sorted(found.runs, key=lambda run: (run.tuner, run.seed))

    assert rows(parts) == rows(whole)
    assert parts.times == whole.times


def test_what_is_wrong_on_the_device_is_nobodys_best(product: Prepared) -> None:
    first, found = Machine(), compared(product)
    compare(product, found, ["random"], 1, 16, first.times(), time.monotonic() + 1000)
    (best,) = first.tested
    again, machine = compared(product), Machine(wrong={best})
    compare(product, again, ["random"], 1, 16, machine.times(), time.monotonic() + 1000)
    assert machine.tested[0] == best
    assert len(machine.tested) == 2
    was, now = (min(us for us in one.runs[0].us if us is not None) for one in (found, again))
    assert now > was
    assert "wrong" in again.why.values()
    assert len(again.tested) == 1


def test_noise_of_estimates_is_of_the_schedule(product: Prepared) -> None:
    found = compared(product)
    points = product.ranked[:20]
    us, again = (Estimated().of(product, found, points) for _ in range(2))
    assert us == again
    ratios = [us[point] / product.space.estimate_us(point) for point in points if us[point]]  # pyright: ignore
    assert len(set(ratios)) == 20
    assert 0.6 < min(ratios) < 1 < max(ratios) < 1.6
    assert Estimated().wrong(product, found, {}) == []


def test_curves_and_deviations() -> None:
    runs = [Run("opevo", 0, [4.0, None, 2.0, 3.0], True), Run("opevo", 1, [None, 4.0], True)]
    assert best_so_far(runs[0], 8_000_000, 5) == [2.0, 2.0, 4.0, 4.0, 4.0]
    assert best_so_far(runs[1], 8_000_000, 3) == [0.0, 2.0, 2.0]
    assert over_seeds(runs, 8_000_000, 3) == [(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]


def test_the_command_without_a_gpu(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "out.json", tmp_path / "out.svg"
    asked = ["--json", str(out), "--by-estimate", "--trials", "12", "--seeds", "2", "--tuners", ",".join(FEW),
             "--operators", "MM1", "--plot", str(plot)]  # fmt: skip
    assert command.main(asked) == 0
    said = capfd.readouterr().out
    assert said.startswith(ESTIMATE)
    assert "MM1: 512 x 1024 by 1024 x 1024" in said
    found = read(out)
    assert found.source == "estimated"
    assert found.device == found.method == ""
    assert [(run.tuner, len(run.us)) for run in found.operators[0].runs] == [
        ("walk", 12), ("opevo", 12), ("opevo", 12), ("random", 12), ("random", 12)
    ]  # fmt: skip
    assert found.operators[0].times == {}
    drawn = ElementTree.fromstring(plot.read_text())
    assert ESTIMATE in "".join(drawn.itertext())
    assert len(drawn.findall(f".//{SVG}polyline")) == len(FEW)
    kept = out.read_bytes()
    assert command.main([*asked, "--show"]) == 0
    assert out.read_bytes() == kept
    assert command.main([*asked, "--trials", "13"]) == 2
    assert "give another file" in capfd.readouterr().err
    assert command.main([*asked, "--limit", "0", "--seeds", "3"]) == 1
    assert "still to do: MM1" in capfd.readouterr().err
    assert out.read_bytes() == kept


def test_what_cannot_be_compared(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--json", str(tmp_path / "out.json"), "--by-estimate"]
    assert command.main([*asked, "--tuners", "opevo,genetic", "--operators", "MM1,MM9"]) == 2
    assert "there is no genetic, MM9" in capfd.readouterr().err
    assert command.main([*asked, "--show"]) == 2
    monkeypatch.setattr(command, "installed", lambda module: False)
    assert command.main(asked) == 2
    assert "scikit-learn" in capfd.readouterr().err
    (tmp_path / "out.json").write_text("{")
    assert command.main(asked) == 2
    assert "cannot be read" in capfd.readouterr().err


def test_measured_figures_say_where() -> None:
    one = Compared("MM1", "a < b", 8_000_000, 3, {"a": 1.0}, runs=[Run("walk", 0, [4.0, 2.0], True)])
    found = Comparison("measured", "h100", "f32", 2, "a GPU", "CUDA graphs", "2026-01-01", {}, 2, [one])
    assert tables(found).startswith("measured on a GPU, 2026-01-01: CUDA graphs (f32, 2 trials)")
    assert "a &lt; b" in curves(found)
    assert tables(Comparison("measured", "h100", "f32", 2)) == "no run has come to its end"


def test_written_beside_first(tmp_path: Path) -> None:
    found = Comparison("estimated", "h100", "f32", 2)
    write(found, tmp_path / "a.json")
    assert read(tmp_path / "a.json") == found
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
