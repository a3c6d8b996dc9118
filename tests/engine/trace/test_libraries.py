"""What a program borrows from another library is traced into as far as it is clean."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.ir.region import Trace
from mugraph.trace.tracer import trace_file

from tests.engine.trace.partition import only, outs, targets
from tests.support.decorated import DOUBLED

TraceWith = Callable[..., Trace]


@pytest.fixture
def trace_with(tmp_path: Path) -> TraceWith:
    """(the library's text, the program's) -> the program's trace, with check each region found equal on real
    tensors."""

    def run(library: str, program: str, check: bool = True) -> Trace:
        packages = tmp_path / "site-packages"
        packages.mkdir()
        (packages / "lent.py").write_text("import torch\nfrom torch import nn\n\n" + textwrap.dedent(library))
        path = tmp_path / "program.py"
        head = f"import sys\nsys.path.append({str(packages)!r})\nimport torch\nfrom torch import nn\nimport lent\n\n"
        path.write_text(head + textwrap.dedent(program))
        return trace_file(path, check=check)

    return run


def found(trace: Trace) -> list[str]:
    assert trace.errors == ()
    return [f"{region.function}: {' '.join(targets(region))}" for region in trace.regions if region.status is None]


LAYER = """
# mugraph: x=f32[4, 32], w=f32[32, 32]
def layer(x, w):
    y = lent.mixed(x @ w, scale=2.0)
    return y @ w
"""


def test_a_function_is_part_of_the_region(trace_with: TraceWith) -> None:
    trace = trace_with("def mixed(x, scale):\n    return nn.functional.silu(x) * scale", LAYER)
    assert found(trace) == ["layer: Tensor.matmul torch.nn.functional.silu Tensor.mul Tensor.matmul"]


def test_what_it_stores_ends_the_region_there(trace_with: TraceWith) -> None:
    library = """
    class Kept:
        last = None

    KEPT = Kept()

    def mixed(x, scale):
        KEPT.last = x * scale
        return KEPT.last
    """
    trace = trace_with(library, LAYER)
    assert [one.split()[0] for one in found(trace)] == ["layer:", "layer:"]


def test_an_exception_that_it_catches_ends_the_region(trace_with: TraceWith) -> None:
    library = """
    def mixed(x, scale):
        try:
            x.no_such_attribute
        except AttributeError:
            return x * scale
    """
    assert len(found(trace_with(library, LAYER))) == 2


def test_a_try_in_which_nothing_is_raised_does_not(trace_with: TraceWith) -> None:
    library = """
    def mixed(x, scale):
        try:
            import math
            return x * math.sqrt(scale)
        except ImportError:
            return x
    """
    assert len(found(trace_with(library, LAYER))) == 1


def test_a_generator_stays_unknown(trace_with: TraceWith) -> None:
    library = """
    def parts(x):
        yield x * 2
        yield x * 3

    def mixed(x, scale):
        return sum(parts(x))
    """
    assert len(found(trace_with(library, LAYER))) == 2


def test_a_program_is_told_that_it_runs(trace_with: TraceWith) -> None:
    """A library that asks whether tensors are fake does what it does when the program runs. Numbers of constants are
    known then."""
    library = """
    from torch._subclasses.fake_tensor import FakeTensor

    def mixed(x, scale):
        if isinstance(x, FakeTensor):
            return x.cumprod(0)
        places = torch.arange(4)
        even = bool((places.diff() == 1).all())
        return x.relu() * scale if even else x.cumsum(0)
    """
    trace = trace_with(library, LAYER, check=False)
    assert trace.errors == ()
    assert trace.barriers == {"Tensor.__bool__": 1}
    assert trace.operators == 8


def test_names_that_are_none(trace_with: TraceWith) -> None:
    """As the weights of an attention that were not asked for."""
    library = "def mixed(x, scale):\n    return x * scale, None"
    program = """
    # mugraph: x=f32[4, 32], w=f32[32, 32]
    def layer(x, w):
        y, weights = lent.mixed(x @ w, scale=2.0)
        z = y @ w
        return z, weights
    """
    region = only([region for region in trace_with(library, program).regions if region.status is None])
    assert (outs(region), region.left_none) == (["z"], ("weights",))


def test_what_a_call_collects_is_its_own(trace_with: TraceWith) -> None:
    """`**rest` is made anew at each call: what is written to it nobody else sees."""
    library = """
    def inner(x, **rest):
        return x * rest["scale"]

    def mixed(x, **rest):
        rest["scale"] = rest["scale"] + 1.0
        rest.setdefault("more", 0)
        return inner(x, **rest)
    """
    assert len(found(trace_with(library, LAYER))) == 1


def test_numbers_of_constants_are_known(trace_with: TraceWith) -> None:
    """Without a second run on real tensors, which large models are not given."""
    library = """
    RUNS = []

    def mixed(x, scale):
        RUNS.append(scale)
        assert len(RUNS) == 1
        return x.relu() * scale if (torch.arange(4).diff() == 1).all() else x.cumsum(0)
    """
    trace = trace_with(library, LAYER, check=False)
    assert len(found(trace)) == 2
    assert [region.reason for region in trace.regions if region.status is not None] == []


def test_a_report_says_whose_code_it_is(trace_with: TraceWith) -> None:
    library = """
    class Kept:
        last = None

    KEPT = Kept()

    def wrapped(function):
        import functools

        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @wrapped
    def whole(x, w):
        KEPT.last = x @ w
        return (KEPT.last @ w).relu()
    """
    program = """
    # mugraph: x=f32[4, 32], w=f32[32, 32]
    def layer(x, w):
        return lent.whole(x, w)
    """
    trace = trace_with(library, program)
    assert found(trace) == []
    assert trace.notices == (
        "layer has no region: 3 of the 3 calls that it makes of PyTorch's are made by whole, in lent.py, line 20; in a "
        "library's code they are put in place from Python: mugraph.optimize(model, *inputs)",
    )


def test_a_function_with_its_decorator_and_without(trace_with: TraceWith) -> None:
    library = (
        DOUBLED
        + """
def mixed(x, scale):
    return scaled(x) + scaled.__wrapped__(x) * scale
"""
    )
    assert len(found(trace_with(library, LAYER))) == 1
