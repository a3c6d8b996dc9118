"""Several kernels for the same code: each is asked where those before it refuse, and then the code itself runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mugraph.checking.again import check_again
from mugraph.edit.apply import EditError, apply_files
from mugraph.edit.revert import revert_file
from mugraph.edit.source.record import read_record

from tests.engine.edit.conftest import Loaded, Maker, gate_source

VALUE = "functional.silu(\n            x @ self.w,  # the product\n        ) * self.u"
WAYS = ("gate", "other_gate", "third_gate")


@pytest.fixture(params=["statements", "expression"])
def applied(
    request: pytest.FixtureRequest, gated_file: Path, maker: Maker, source: str, part: str
) -> tuple[Path, list[str]]:
    """A file in which three kernels take calls of scale 1, 2 and 3; and their names."""
    whole = {"statements": (part, ("y",)), "expression": (VALUE, ("",))}[request.param]
    plans = [
        maker.plan(
            source,
            whole[0],
            name=f"gated_{number}",
            unit=request.param,
            live_outs=whole[1],
            guards=(f"self.scale == {number}.0",),
            kernel=kernel,
        )
        for number, kernel in enumerate(WAYS, 1)
    ]
    apply_files(gated_file, plans, {kernel: gate_source(kernel) for kernel in WAYS})
    return gated_file, [plan.name for plan in plans]


def test_each_takes_its_calls(
    applied: tuple[Path, list[str]], load: Callable[[Path], Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = applied
    loaded, log = load(path), list[str]()
    monkeypatch.setattr(loaded.kernels, "_tested_gpu", lambda kind, index: True)
    for kernel in WAYS:

        def launch(product: torch.Tensor, u: torch.Tensor, kernel: str = kernel) -> torch.Tensor:
            log.append(kernel)
            return torch.nn.functional.silu(product) * u

        monkeypatch.setattr(loaded.kernels, f"launch_{kernel}", launch)
    model, x, results = loaded.model.Gated(), torch.ones(4, 8), list[torch.Tensor]()
    with torch.no_grad():
        for scale in (3.0, 1.0, 2.0, 4.0):
            model.scale = scale
            results.append(model(x))
    assert log == ["third_gate", "gate", "other_gate"]
    assert all(torch.equal(one, results[-1]) for one in results)


def test_it_is_undone_to_the_byte(applied: tuple[Path, list[str]], source: str) -> None:
    path, _ = applied
    assert path.read_text() != source
    assert revert_file(path).regions == 1
    assert path.read_text() == source


def test_all_of_them_are_in_the_record(applied: tuple[Path, list[str]]) -> None:
    path, names = applied
    record = read_record(path.with_name("gated_model_mugraph.py"))
    assert record is not None
    (one,) = record.regions
    assert list(one.names(record)) == names
    assert one.also == tuple(names[1:])


def test_each_has_its_evidence(applied: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    path, names = applied
    module = path.with_name("gated_model_mugraph.py")
    record, asked = read_record(module), list[str]()
    assert record is not None
    monkeypatch.setattr("mugraph.checking.again._of_evidence", lambda name, *_: asked.append(name) or ())
    nothing: object = None
    (checked,) = check_again(module, record, nothing)  # type: ignore[arg-type]
    assert checked.function == "Gated.forward"
    assert asked == names


def test_other_lines_of_the_same_code_are_refused(gated_file: Path, maker: Maker, source: str, part: str) -> None:
    plans = [
        maker.plan(source, part, name="gated_1"),
        maker.plan(source, VALUE, name="gated_2", unit="expression", live_outs=("",), kernel="other_gate"),
    ]
    with pytest.raises(EditError, match="overlap"):
        apply_files(gated_file, plans, {kernel: gate_source(kernel) for kernel in WAYS[:2]})
    assert gated_file.read_text() == source
