"""Names of modules that a program changes while it runs: what a region would read of them is not what a guard sees."""

from __future__ import annotations

from tests.engine.trace.partition import Regions


def test_what_a_function_binds_anew_is_not_read_in_a_region(regions: Regions) -> None:
    found = regions("""
        LATEST = None

        def keep(x):
            global LATEST
            if LATEST is None:
                LATEST = x
            return x

        def shifted(x):
            return torch.tanh(x) if LATEST is None else torch.tanh(x) + LATEST

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def own(x, w):
            y = keep(x)
            z = y if LATEST is None else LATEST + y
            return (z @ w).softmax(-1)

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def called(x, w):
            y = shifted(x @ w)
            return y.softmax(-1)
        """)
    assert {region.function for region in found} >= {"own", "called"}
    for region in found:
        assert "LATEST is None" not in region.text
        assert "shifted(" not in region.text


def test_whether_a_table_that_fills_has_a_key_is_not_read_in_a_region(regions: Regions) -> None:
    found = regions("""
        TABLE = {}
        KINDS = {"tanh": 1}

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def filled(x, w):
            y = torch.tanh(x @ w)
            if "k" in TABLE:
                y = TABLE["k"] * 0.5
            z = y.softmax(-1)
            TABLE["k"] = z
            return z

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def fixed(x, w):
            y = torch.tanh(x @ w)
            if "tanh" in KINDS:
                y = torch.tanh(y)
            return y.softmax(-1)

        # mugraph: x=f32[4, 8]
        class Cached(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = {}

            def forward(self, x):
                y = torch.tanh(x) * 2
                if x.dtype in self.table:
                    y = y + self.table[x.dtype]
                y = y.softmax(-1) + 1
                self.table[x.dtype] = y
                return y
        """)
    assert {region.function for region in found} >= {"filled", "fixed", "Cached.forward"}
    for region in found:
        assert "in TABLE" not in region.text
        assert "in self.table" not in region.text
    assert any("in KINDS" in region.text for region in found)


def test_what_keeps_its_result_runs_outside_of_regions(regions: Regions) -> None:
    """To read it in a test would compute it where the program does not."""
    found = regions("""
        import functools

        # mugraph: x=f32[4, 8]
        class Kept(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.zeros(8))

            @functools.cached_property
            def shift(self):
                return torch.tanh(self.state) + 0.5

            def forward(self, x):
                y = torch.tanh(x) + x.mean(-1, keepdim=True)
                z = y + self.shift
                return torch.sigmoid(z) * z
        """)
    assert {region.function for region in found} >= {"Kept.forward"}
    for region in found:
        assert region.function == "Kept.shift" or "self.shift" not in region.text
        assert not any("self.shift" in guard for guard in region.guards)
