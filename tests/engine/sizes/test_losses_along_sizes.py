"""Losses along an axis whose size varies: the mean divides by as many elements as there are, as the kernel counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.sizes import table
from mugraph.sizes.proved import varying_of
from mugraph.sizes.text import text_checked
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges

from tests.engine.sizes.decoding import Made, made_of, run

LOSSES = {
    "mse": ("a=f32[b, 48], c=f32[b, 48]", "F.mse_loss(a, c)"),
    "broadcast": ("a=f32[b, 24], c=f32[24]", "F.soft_margin_loss(a, c)"),
    "turned": ("a=f32[16, b], c=f32[16, b]", "F.smooth_l1_loss(a, c, beta=0.3)"),
    "sum": ("a=f32[b, 40], c=f32[b, 40]", 'F.huber_loss(a, c, reduction="sum")'),
    "batchmean": ("a=f32[b, 24], c=f32[b, 24]", 'F.kl_div(a, c.softmax(-1), reduction="batchmean")'),
    "triplet": ("a=f32[b, 32], c=f32[b, 32], d=f32[b, 32]", "F.triplet_margin_loss(a, c, d)"),
    "probabilities": ("a=f32[b, 32], c=f32[b, 32]", "F.cross_entropy(a, c.softmax(-1))"),
    "root": ("a=f32[b, 48], c=f32[b, 48]", "torch.sqrt(F.mse_loss(a, c))"),
}
CODE = """\
import torch
import torch.nn.functional as F


# mugraph: b=1..300, {arguments}
def loss({names}):
    return {loss}
"""
RUN = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import code, kernels
torch.manual_seed(0)
assert code.__file__.startswith({folder!r})
for b in (1, 2, 5, 31, 64, 177, 300):
    given = {{name: torch.randn(eval(shape)) for name, shape in {shapes!r}.items()}}
    torch.testing.assert_close(kernels.launch_decode({inputs}), code.loss(**given), rtol=1e-5, atol=1e-6)
print("right")
"""


def text_of(name: str) -> str:
    arguments, loss = LOSSES[name]
    return CODE.format(arguments=arguments, loss=loss, names=", ".join(re.findall(r"(\w+)=", arguments)))


@pytest.fixture(scope="module", params=LOSSES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(name)


@pytest.fixture(scope="module")
def made(name: str, folder: Path) -> Made:
    return made_of(text_of(name), folder)


@pytest.fixture(scope="module")
def source(made: Made) -> KernelSource:
    return made.table.source(made.kernels)


def test_its_text_is_right_and_proved_for_all_sizes(made: Made, source: KernelSource) -> None:
    text = text_checked(made.program, source, made.kernels)
    assert text.passed, text.reason
    assert text.proved_claims


def test_it_is_right_at_other_sizes(name: str, source: KernelSource, folder: Path) -> None:
    shapes = dict(re.findall(r"(\w+)=f32\[([^]]*)\]", LOSSES[name][0]))
    shapes = {argument: f"({shape},)" for argument, shape in shapes.items()}
    inputs = ", ".join(f"given[{tensor.source!r}]" for tensor in source.inputs)
    command = RUN.format(folder=str(folder), shapes=shapes, inputs=inputs)
    run(command.replace("launch_decode", f"launch_{source.name}"), source, folder)


def wrong_somewhere(program: TensorProgram, source: KernelSource, text: str) -> bool:
    """Is it refused, by a proof for all sizes or at one of those that are tested?"""
    if not check_ranges(program, source, varying_of(program), text).passed:
        return True
    inputs, outputs = ([one.name for one in tensors] for tensors in (source.inputs, source.outputs))
    smaller = (table.at_sizes(program, [], sizes)[0] for sizes in table.tested_sizes(program))
    return not all(check_text(one, text, f"launch_{source.name}", inputs, outputs).passed for one in smaller)


def test_another_count_is_refused(name: str, made: Made, source: KernelSource) -> None:
    text = source.standalone()
    changes = [(found, found.replace("0 <=", "1 <=")) for found in set(re.findall(r"0 <= \w+", text))]
    changes += [(found, f"({found}) - 1") for found in set(re.findall(r"\w+\.numel\(\)(?: // \d+)?", text))]
    assert changes, text
    for old, new in changes:
        assert wrong_somewhere(made.program, source, text.replace(old, new)), (name, old)
