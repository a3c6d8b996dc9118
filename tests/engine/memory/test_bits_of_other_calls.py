"""One program may have come of several calls, which round in different places: what is known of the bits of a kernel
beside some of them is not said of it beside others."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, RegionResult
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.sizes.same_bits import same_bits_again
from mugraph.store import Store
from mugraph.verification.verdict import SameBits

AS_IT_IS = """
# mugraph: x=f16[256, 1024], y=f16[256, 1024]
def as_it_is(x, y):
    return torch.relu(x + y)
"""
CLAMPED = """
# mugraph: x=f16[256, 1024], y=f16[256, 1024]
def clamped(x, y):
    return torch.clamp(x + y, min=0)
"""
ORDERS = [(AS_IT_IS, CLAMPED), (CLAMPED, AS_IT_IS)]


def solved(path: Path, *functions: str, store: Store | None = None, exact: bool = False) -> dict[str, RegionResult]:
    path.write_text("import torch\n" + "".join(functions))
    options = Options(target="h100", measure=False, budget_s=3.0, exact=exact)
    (done,) = (event for event in run(path, None, options, store=store) if isinstance(event, Done))
    return {region.region.function: region for region in done.result.regions}


def bits(found: RegionResult) -> SameBits:
    (unit,) = found.units
    assert unit.solution is not None, found.reason
    said = unit.solution.verdict.same_bits
    assert said is not None
    return said


@pytest.mark.parametrize("functions", ORDERS, ids=["known first", "unknown first"])
@pytest.mark.parametrize("stored", [False, True], ids=["in one run", "from the store"])
def test_what_is_said_is_of_the_own_calls(functions: tuple[str, str], stored: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    with Store.open(tmp_path / "store.db") as store:
        if stored:
            first = solved(path, functions[0], store=store)
            second = solved(path, functions[1], store=store)
            assert [unit.from_store for unit in next(iter(second.values())).units] == [True], "one program"
            found = first | second
        else:
            found = solved(path, *functions)
    clamped, as_it_is = bits(found["clamped"]), bits(found["as_it_is"])
    assert not clamped.holds
    assert "torch.clamp" in clamped.why
    if functions == ORDERS[0]:
        assert as_it_is.holds
    else:  # nothing is claimed that was not tested
        assert as_it_is.holds or "other calls" in as_it_is.why
        assert "torch.clamp" not in as_it_is.why


@pytest.mark.parametrize("functions", ORDERS, ids=["known first", "unknown first"])
def test_only_exact_kernels_are_offered_and_all_of_them(functions: tuple[str, str], tmp_path: Path) -> None:
    found = solved(tmp_path / "model.py", *functions, exact=True)
    assert found["as_it_is"].status == "improved"
    assert bits(found["as_it_is"]).holds
    assert found["clamped"].status != "improved"


def test_what_a_float_test_has_seen_stays(tmp_path: Path) -> None:
    (unit,) = solved(tmp_path / "model.py", AS_IT_IS)["as_it_is"].units
    assert unit.solution is not None
    source = unit.solution.source
    assert same_bits_again(unit.unit, source, None) is None
    assert same_bits_again(unit.unit, source, SameBits(True)) == unit.solution.verdict.same_bits
    seen = SameBits(False, "its text rounds as PyTorch does, but on normal inputs a bit was another")
    assert same_bits_again(unit.unit, source, seen) == seen
    other = same_bits_again(
        unit.unit, source, SameBits(False, "of torch.clamp it is not known where every version of PyTorch rounds")
    )
    assert other is not None
    assert not other.holds
    assert "other calls" in other.why
