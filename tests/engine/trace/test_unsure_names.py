"""Names of a region that have a value on some ways through its function and none on others."""

from __future__ import annotations

import ast

import pytest
from mugraph.trace.syntax.binding import surely_bound, surely_read

from tests.engine.trace.partition import Regions, outs

LAYERS = """
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Linear(8, 8)

        def forward(self, x):
            return torch.sigmoid(self.w(x)) * x

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.ModuleList(Gate() for _ in KINDS)
            self.kinds = KINDS

        # mugraph: x=f32[4, 8]
        def forward(self, x):
            seen = []
            for kind, gate in zip(self.kinds, self.gates):
                skip = x
                if kind == "pair":
                    out, kept = gate(x), torch.tanh(x)
                else:
                    out = gate(x)
                x = torch.tanh(out) + skip
                if kind == "pair":
                    seen.append(kept)
            return x, seen
    """


def test_a_way_reads_and_binds_what_it_runs(regions: Regions) -> None:
    """`out` and `kept` have values in the second iteration, which no iteration reads before it binds them."""
    found = regions(LAYERS.replace("KINDS", '("pair", "one", "pair", "one")'))
    ways = [region for region in found if "skip" in region.text]
    assert sorted((region.times, tuple(outs(region))) for region in ways) == [
        (2, ("kept", "out", "x")),
        (2, ("out", "x")),
    ]
    for region in ways:
        assert {named.expression for named in region.live_ins} == {"x", "gate.w.weight", "gate.w.bias"}
        assert not any("out" in guard or "kept" in guard for guard in region.guards)


def test_what_may_be_unbound_is_not_read_by_a_test(regions: Regions) -> None:
    """The region is inside of the branch: its test is not made in the first iteration, in which `kept` has no value."""
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def walk(x, w):
            for kind in ("keep", "use", "use"):
                if kind == "keep":
                    print(kind)
                    kept = torch.tanh(x @ w)
                if kind == "use":
                    x = torch.sigmoid(x + kept) * x
            return x
        """)
    assert found
    for region in found:
        if any("kept" in named.expression for named in region.live_ins):
            assert region.text.startswith("x = torch.sigmoid")


def test_what_is_read_in_any_case_may_be_read_by_a_test(regions: Regions) -> None:
    """A loop may run no iteration. The code after it raises then, whether or not the region's test does."""
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def last(x, w):
            for n in range(2):
                print(n)
                y = torch.tanh(x @ w)
            return torch.sigmoid(y) * y
        """)
    assert any("torch.sigmoid" in region.text for region in found), [region.text for region in found]


WRITES = """
    class Averages(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(8))

        # mugraph: x=f32[4, 8]
        def forward(self, x):
            for n in range(2):
                print(n)
                rows = torch.tanh(x)
            UPDATE
            return x
    """


@pytest.mark.parametrize(
    ("first", "update", "is_region"),
    [
        ("mul_", "self.mean.mul_(0.9).add_(rows.mean(0), alpha=0.1)", False),
        ("mul_", "self.mean.mul_(0.9); self.mean.add_(rows.mean(0), alpha=0.1)", False),
        ("lerp_", "self.mean.lerp_(rows.mean(0), 0.1)", True),
        ("add_", "self.mean.add_(rows.mean(0), alpha=0.1).mul_(0.9)", True),
        ("mul_", "step = rows.mean(0) * rows.amax(0); self.mean.mul_(0.9).add_(step, alpha=0.1)", True),
    ],
)
def test_a_write_is_not_kept_back_by_a_name_that_is_read_later(
    regions: Regions, first: str, update: str, is_region: bool
) -> None:
    """Where `rows` has no value, PyTorch has written to `mean` before that is an error. first: the first write"""
    found = regions(WRITES.replace("UPDATE", update.replace("; ", "\n            ")))
    reading = [region for region in found if any("rows" in one.expression for one in region.live_ins)]
    assert any(first in region.text for region in reading) == is_region, [region.text for region in found]


def _analysed(body: str) -> tuple[set[str], set[str]]:
    """Names that are surely bound where `here = …` is, and those that this line surely reads."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    tree = ast.parse(f"def f(a, b):\n{lines}")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    at = next(
        node for node in ast.walk(function) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "here"
    )
    return set(surely_bound(function, at)), surely_read([at])


def test_definite_assignment() -> None:
    assert _analysed("c = a\nhere = c")[0] == {"a", "b", "c"}
    assert _analysed("if a:\n    c = d = a\nelse:\n    c = b\nhere = c")[0] == {"a", "b", "c"}
    assert _analysed("if a:\n    c = a\nelif b:\n    return b\nelse:\n    raise b\nhere = c")[0] == {"a", "b", "c"}
    assert _analysed("for c in a:\n    d = c\n    here = d\n    e = d")[0] == {"a", "b", "c", "d"}
    assert _analysed("for c in a:\n    d = c\nhere = b")[0] == {"a", "b"}
    assert _analysed("while (c := a):\n    d = c\nhere = b")[0] == {"a", "b", "c"}
    assert _analysed("with a as c:\n    d = c\nhere = d")[0] == {"a", "b", "c", "d"}
    assert _analysed("try:\n    c = a\nexcept E:\n    c = b\n    d = b\nhere = c")[0] == {"a", "b", "c"}
    assert _analysed("c = a\ndel c, b\nhere = a")[0] == {"a"}
    assert _analysed("c: int\nif a and (d := b):\n    pass\nhere = a")[0] == {"a", "b"}
    assert _analysed("match a:\n    case 1:\n        c = 1\n    case _:\n        c = 2\nhere = a")[0] == {"a", "b"}


def test_what_is_surely_read() -> None:
    assert _analysed("here = a if b else c")[1] == {"b"}
    assert _analysed("here = a and b")[1] == {"a"}
    assert _analysed("here = a + b[c]")[1] == {"a", "b", "c"}
    assert _analysed("here = a < b < c")[1] == {"a", "b"}
    assert _analysed("here = (lambda: c)(a)")[1] == {"a"}
