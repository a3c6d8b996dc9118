"""Numbers and constants that no literal says: a region that reads one is for that one alone."""

from __future__ import annotations

import pytest
from mugraph.ir.spelled import spelled

from tests.engine.trace.partition import Regions, only

PROGRAM = """
    import datetime
    import enum
    import fractions
    import numpy as np


    class Way(enum.Enum):
        FIRST = "first"
        OTHER = "other"


    class Level(enum.IntEnum):
        LOW = 1


    class Width(float):
        pass


    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = HELD

        # mugraph: x=f32[8, 16], w=f32[16, 16]
        def forward(self, x, w):
            held = self.held
            return torch.softmax(torch.tanh(USED) @ w, -1)
    """
USES = {
    "np.float64(0.25)": "x * held",
    "np.float32(0.3)": "x * held",
    "np.int16(3)": "x / held",
    "np.array([0.5, 2.0])": "x * held[1]",
    "np.bool_(True)": "x + 1 if held else x",
    "np.linspace(0, 1, 100)": "x * held[50]",
    "float('inf')": "x.clamp(max=held) * 3",
    "Way.FIRST": "x + 1 if held is Way.FIRST else x",
    "Level.LOW": "x * held",
    "Width(1.5)": "x * held",
    "fractions.Fraction(1, 3)": "x * float(held)",
    "datetime.timedelta(seconds=2)": "x * held.seconds",
    "complex(2, 1)": "x * held.imag",
    "b'ab'": "x * held[0]",
    "{1, 2}": "x + 1 if 2 in held else x",
    "(slice(0, 8), 3)": "x[held[0]] * held[1]",
    "range(2, 5)": "x * held.stop",
    "[*range(3, 30)]": "x + 1 if 4 in held else x",
    "tuple('abcdefghij' * 40)": "x * held.index('c')",
    "{n: n * 0.5 for n in range(40)}": "x * sum(held.values())",
    "[(n, 0.5) for n in range(400)]": "x * sum(some for _, some in held)",
}


@pytest.mark.parametrize("where", ["local", "attribute"])
@pytest.mark.parametrize("held", USES)
def test_the_region_is_for_that_value(regions: Regions, held: str, where: str) -> None:
    used = USES[held] if where == "local" else USES[held].replace("held", "self.held")
    program = PROGRAM.replace("HELD", held).replace("USED", used)
    (guard,) = [
        one
        for one in only(regions(program)).guards
        if one.startswith(f"_spelled({'held' if where == 'local' else 'self.held'}) ==")
    ]
    assert guard.count("==") == 1


LONG = {
    "numbers": [*range(3, 30)],
    "many numbers": [0.5] * 2000,
    "many words": ["ab", "cd"] * 400,
    "pairs": [(n, 0.5) for n in range(500)],
    "a tuple": tuple(range(1000)),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("at", [0, 17, -1])
def test_of_long_lists_each_item_counts(name: str, at: int) -> None:
    items = [*LONG[name]]
    said = spelled(items)
    assert said is not None
    assert said == spelled([*items])
    assert said != spelled(tuple(items))
    for other in (9, 3.0, True, "other", (n := items[at], n)):
        assert spelled([*items[:at], other, *items[at:][1:]]) != said
    assert spelled([*items, items[-1]]) != said


def test_numbers_of_numpy_are_operands_as_python_s_are(regions: Regions) -> None:
    region = only(regions(PROGRAM.replace("HELD", "np.float32(0.5)").replace("USED", "held * x + self.held")))
    assert [call.args[1] for call in region.calls[:2]] == [0.5, 0.5]


def test_what_pytorch_s_modules_keep(regions: Regions) -> None:
    region = only(
        regions("""
        import numpy as np

        class Limited(nn.Module):
            def __init__(self):
                super().__init__()
                self.limit = nn.Hardtanh(-1.0, float("inf"))
                self.slope = nn.LeakyReLU(np.float64(0.2))

            # mugraph: x=f32[8, 16], w=f32[16, 16]
            def forward(self, x, w):
                return torch.softmax(self.slope(self.limit(x @ w)), -1)
        """)
    )
    assert "_spelled(self.limit.max_val) == 'float(inf)'" in region.guards
    assert "_spelled(self.slope.negative_slope) == 'float64(0.2)'" in region.guards
    assert not any("_non_persistent" in guard for guard in region.guards)
