"""The bound of Theorem 2 for a text: what is counted, and what takes the bound away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.solve.beside import beside
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.check import check_text
from mugraph.triton_text.verdict import TextVerdict
from mugraph.verification.bound import theorem_2

TARGET = 1e-9
_KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, {body}, mask=at < n)


def launch(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), {block}),)](x, y, out, x.numel(), B={block})
    return out
"""

_COVERED = [
    ("x * y", "y * x", 1, 2),
    ("x * y + x", "x * (y + 1)", 1, 2),
    ("x / (y + 1) + y", "(x + y * y + y) / (y + 1)", 1, 3),  # (x + y (y + 1)) (y + 1) beside (x + y^2 + y) (y + 1)
    ("torch.exp(x) * y", "y * tl.exp(x)", 1, 1),
    ("torch.exp(x) + torch.exp(y)", "tl.exp(y) + tl.exp(x)", 2, 1),
    ("y / (1 + torch.exp(-x))", "y / (1 + tl.exp(-x))", 2, 1),  # y + y e^-x on either side
]
_OUTSIDE = [
    ("torch.sqrt(x * x) * y", "tl.sqrt(x * x) * y", "sqrt is outside Theorem 2"),
    ("x + y", "tl.maximum(x, x) + y", "a maximum is outside Theorem 2"),
    ("x + y", "tl.where(x < y, x + y, y + x)", "a comparison of what is computed is outside Theorem 2"),
]
_SUM, _MANY, _LONG = "(x * y).sum(-1, keepdim=True) * x", "6 * (x * y)", "x * y"
_PROGRAMS = list(
    dict.fromkeys(
        [
            *((returns, "40") for returns, *_ in (*_COVERED, *_OUTSIDE)),
            ("torch.sigmoid(x) * y", "40"),
            (_SUM, "40"),
            (_MANY, "300000"),
            (_LONG, "5000000"),
        ]
    )
)


class _Checked:
    """Texts beside programs of two rows of numbers, all traced at once."""

    def __init__(self, path: Path) -> None:
        functions = [
            f"# mugraph: x=f32[{shape}], y=f32[{shape}]\ndef function_{at}(x, y):\n    return {returns}\n"
            for at, (returns, shape) in enumerate(_PROGRAMS)
        ]
        path.write_text("\n\n".join(["import torch\n", *functions]))
        self._trace = trace_file(path)

    def __call__(self, returns: str, body: str, block: int = 16, shape: str = "40", seed: int = 7) -> TextVerdict:
        name = f"function_{_PROGRAMS.index((returns, shape))}"
        alone = replace(self._trace, regions=tuple(one for one in self._trace.regions if one.function == name))
        reference = beside(alone, name)
        assert not isinstance(reference, str)
        shapes = {name: (info.shape, info.strides) for name, info in reference.seen.items()}
        text = _KERNEL.format(body=body, block=block)
        return check_text(
            reference.program, text, "launch", ["x", "y"], reference.outputs, seed, shapes=shapes, target=TARGET
        )


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> _Checked:
    return _Checked(tmp_path_factory.mktemp("references") / "reference.py")


@pytest.mark.parametrize(("returns", "body", "terms", "degree"), _COVERED)
def test_terms_and_degree(checked: _Checked, returns: str, body: str, terms: int, degree: int) -> None:
    found = checked(returns, body)
    assert found.passed, found.reason
    assert found.bound is not None, found.bound_note
    assert found.bound <= TARGET
    assert found.bound_note == f"k = {terms}, d = {degree}"
    assert theorem_2(degree, terms) ** found.seeds <= found.bound <= TARGET
    assert theorem_2(degree, terms) ** (found.seeds - 1) > TARGET


@pytest.mark.parametrize(("returns", "body", "why"), _OUTSIDE)
def test_what_the_theorem_does_not_cover(checked: _Checked, returns: str, body: str, why: str) -> None:
    found = checked(returns, body)
    assert found.passed, found.reason
    assert (found.bound, found.bound_note, found.seeds) == (None, why, 1)


def test_all_blocks_are_needed(checked: _Checked) -> None:
    found = checked(_LONG, "x * y", block=1024, shape="5000000")
    assert found.passed, found.reason
    assert found.bound is None
    assert found.bound_note.endswith(f"of its {found.blocks} blocks were run")


def test_what_takes_too_long_is_not_counted(checked: _Checked) -> None:
    body = " + ".join(["x * y"] * 6)
    found = checked(_MANY, body, block=1024, shape="300000")
    assert found.passed, found.reason
    assert (found.bound, found.bound_note) == (None, "its terms are too many to be counted in seconds")


def test_a_function_that_is_random_is_said(checked: _Checked) -> None:
    found = checked("torch.sigmoid(x) * y", "tl.sigmoid(x) * y")
    assert found.bound is not None
    assert found.bound_note == "k = 1, d = 2; sigmoid taken as a random function"
    by_form = checked("torch.sigmoid(x) * y", "y / (1 + tl.exp(-x))")
    assert by_form.bound is not None
    assert by_form.bound_note == "k = 2, d = 1"


def test_the_same_counts_as_of_the_program(checked: _Checked) -> None:
    """Sums: a row of forty terms beside the same, in halves."""
    found = checked(_SUM, "tl.sum(x * y) * x", block=64)
    assert found.passed, found.reason
    assert found.bound_note == "k = 1, d = 3"


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_text_has_no_bound(checked: _Checked, seed: int) -> None:
    found = checked("x * y + x", "x * (y + 2) - y", seed=seed)
    assert (found.passed, found.check, found.bound) == (False, "fields", None)
