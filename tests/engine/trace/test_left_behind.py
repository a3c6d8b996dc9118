"""What one function's run leaves in the module, where the run of another needs numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.region import Trace

TABLES = {
    "a table": ("TABLE = {}", "kept = TABLE.setdefault('k', x.abs())"),
    "a table with what it had": ("TABLE = {'n': 1}", "kept = TABLE.setdefault(x.dtype, x.abs())"),
    "a list": ("SEEN = []", "SEEN.append(x.abs()); kept = SEEN[0]"),
    "a global name": ("LATEST = None", "global LATEST; LATEST = x.abs() if LATEST is None else LATEST; kept = LATEST"),
    "a table of lists": ("TABLE = {}", "TABLE.setdefault('k', []).append((x.abs(), 1)); kept = TABLE['k'][0][0]"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_run_on_real_tensors_takes_none_without_numbers(trace: Callable[..., Trace], name: str) -> None:
    named, keeps = TABLES[name]
    found = trace(f"""
{named}

# mugraph: x=f32[16, 32]
def first(x):
    {keeps}
    return torch.softmax(kept * 2 + 1, dim=-1)

# mugraph: x=f32[16, 32]
def second(x):
    {keeps}
    if float(kept.max()) > -1:
        x = torch.softmax(kept * 3 + x, dim=-1)
    return x
""")
    failed = [region.reason for region in found.regions if region.status == "failed"]
    assert not failed
    assert {"first", "second"} <= {region.function for region in found.regions}


def test_each_function_is_run_in_the_module_as_it_was_imported(trace: Callable[..., Trace]) -> None:
    """A program that calls `second` first has nothing in the table."""
    found = trace("""
TABLE = {}

# mugraph: x=f32[16, 32]
def first(x):
    kept = TABLE.setdefault("k", x.abs())
    return torch.softmax(kept * 2 + 1, dim=-1)

# mugraph: y=f32[8, 4]
def second(y):
    kept = TABLE.get("k", y) * 3
    return torch.softmax(kept + 1, dim=-1)
""")
    read = [region for region in found.regions if region.function == "second"]
    assert read
    for region in read:
        assert region.values[region.live_ins[0].value].shape == (8, 4)
