"""What a search has met on its way, and which code each box of a drawing comes from: by messages alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from mugraph.baseline.rates import fitted
from mugraph.protocol import messages as m
from mugraph.protocol.values import Document, Region

from .conftest import Engine, document

SAMPLES = Path(__file__).parents[3] / "samples"
_BOX = re.compile(r'<g( data-source="[\d ]+")?(?: data-thread="\w+")?><title>([^<]*)</title><rect class="(\w+)"')


@pytest.fixture
def engine(prepared: Engine) -> Engine:
    return prepared


@pytest.fixture
def sample(engine: Engine, request: pytest.FixtureRequest) -> Document:
    path = engine.root / f"{request.param}.py"
    shutil.copy(SAMPLES / path.name, path)
    return document(path)


def results(engine: Engine) -> list[Region]:
    last = {change.region.key: change.region for change in engine.all_of(m.RegionChanged)}
    return list(last.values())


def sources(engine: Engine, sample: Document, region: Region) -> dict[str, set[str]]:
    """Title of a box -> the code it comes from."""
    drawing = engine.ask(m.Draw(engine.id(), sample.uri, region.key, "svg"), m.Drawing)
    lines = Path(sample.path).read_text().split("\n")
    texts = [lines[s.start.line][s.start.character : s.end.character] for s in region.statements]
    found: dict[str, set[str]] = {}
    for places, title, look in _BOX.findall(drawing.text):
        if look != "kernel":
            found[title] = {texts[int(number)] for number in re.findall(r"\d+", places)}
    return found


@pytest.mark.parametrize("sample", ["rmsnorm_linear"], indirect=True)
def test_candidates_and_sources_of_a_norm_and_a_product(engine: Engine, sample: Document):
    assert engine.search(sample).outcome == "done"
    (region,) = results(engine)
    better = [message.candidate for message in engine.all_of(m.BetterHit)]
    others = [message.candidate for message in engine.all_of(m.AnotherHit)]
    estimates = [candidate.estimate_us for candidate in better]
    assert estimates, "at least the first one is better than none"
    assert estimates == sorted(estimates, reverse=True)
    told = {(one.kernel, one.number) for one in (*better, *others)}
    assert {(one.kernel, one.number) for one in region.candidates} >= told
    assert [one.number for one in region.candidates] == list(range(len(region.candidates)))
    assert [one.seconds for one in region.candidates] == sorted(one.seconds for one in region.candidates)
    assert {one.kernel for one in region.candidates} == set(region.kernels[:1])
    (chosen,) = [one for one in region.candidates if one.chosen]
    assert region.timing is not None
    assert chosen.estimate_us + fitted().rates.graph_us == pytest.approx(region.timing.optimized_us)
    assert all(one.measured_us is None for one in region.candidates), "nothing was measured, and nothing says so"
    assert all(re.search(r"\d+ blocks?; .*\d warps", one.words) for one in region.candidates)

    found = sources(engine, sample, region)
    norm, linear = "self.norm(x)", "self.linear(self.norm(x))"
    assert all(found.values()), "every box comes from somewhere"
    assert found["self.norm.weight"] == {norm}
    assert found["self.linear.weight"] == {linear}
    by_operator = {(match[1], match[0]): places for title, places in found.items() if (match := _parts(title))}
    assert {name for (name, _), places in by_operator.items() if places == {linear}} >= {"dot"}
    for (name, title), places in by_operator.items():
        if name in ("sqrt", "sum", "div"):
            assert places == {norm}, title
        if name == "dot":
            assert places == {linear}, title


def _parts(title: str) -> tuple[str, str] | None:
    match = re.match(r"\w+\[[^\]]*\](?:: \w+)? = ([\w.]+)\(", title)
    return (title, match[1]) if match else None


@pytest.mark.parametrize("sample", ["gated_mlp"], indirect=True)
def test_two_products_are_told_apart(engine: Engine, sample: Document):
    assert engine.search(sample).outcome == "done"
    region = next(region for region in results(engine) if region.function == "gated_mlp")
    found = sources(engine, sample, region)
    dots = {title: places for title, places in found.items() if " = dot(" in title}
    assert {next(iter(places)) for places in dots.values()} == {"x @ w1", "x @ w2"}
    for title, places in dots.items():
        assert places == ({"x @ w1"} if "w1" in title else {"x @ w2"}), title
    (silu,) = [places for title, places in found.items() if "silu(" in title]
    assert silu == {"F.silu(x @ w1)"}
    assert found["x"] == {"x @ w1", "x @ w2"}


@pytest.mark.parametrize("sample", ["lora"], indirect=True)
def test_an_engine_that_has_it_from_the_store_knows_the_way_too(engine: Engine, sample: Document):
    assert engine.search(sample).outcome == "done"
    first = {region.key: region.candidates for region in results(engine)}
    assert any(first.values())
    path = engine.root / "other.py"
    shutil.copy(sample.path, path)
    copy = document(path)
    engine.heard.clear()
    assert engine.search(copy).outcome == "done"
    again = {change.region.key: change.region for change in engine.all_of(m.RegionChanged)}
    for key, candidates in first.items():
        report = again[key].search
        assert report is not None
        assert report.from_store
        assert again[key].candidates == candidates
