"""Every sample runs, at its declared shapes, on fake tensors (no memory, no arithmetic); importing one does nothing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.overrides import TorchFunctionMode

from tests.samples.declared import SAMPLES, arguments, declarations

FILES = sorted(SAMPLES.glob("*.py")) + sorted(SAMPLES.glob("reach/*.py"))

SHAPES = {
    "rmsnorm_linear.RMSNormLinear": (2, 6144),
    "gated_mlp.gated_mlp": (8, 4096),
    "gated_mlp.GatedMLP": (8, 4096),
    "lora.lora": (16, 4096),
    "lora.LoRALinear": (16, 4096),
    "norm_transformer.norm_transformer": (8, 4096),
    "gqa_attention.gqa_attention": (2, 256, 64),
    "gqa_attention.gqa_attention_expanded": (1, 16, 32, 64),
    "gqa_decode.gqa_decode": (2, 8, 128),
    "qknorm_attention.qknorm_attention": (2, 256, 64),
    "qknorm_attention.qknorm_sdpa": (1, 2, 256, 64),
    "mha.mha": (1, 32, 16, 64),
    "mha.mha_by_hand": (32, 16, 64),
    "mqa.Model": (64, 16, 64),
    "mlp_adapter.Model": (8, 4096),
    "moe.moe": (8, 8, 4096),
    "moe.Experts": (8, 8, 4096),
    "gemm_chain.g1": (512, 64),
    "gemm_chain.g12": (8, 1024, 128),
    "self_attention.s6": (16, 256, 80),
    "self_attention.s9": (1, 1024, 64),
    "llama_block.LlamaBlock": (1, 64, 4096),
}
"""Of the results at the papers' shapes."""

DATA_DEPENDENT = {"data_dependent.data_dependent"}
"""Samples whose point is that they read a value: fake tensors stop there."""


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(func.__name__)
        return func(*args, **(kwargs or {}))


def load(path: Path) -> ModuleType:
    name = "samples_" + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def results(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """What each declared function and module of the file returns, on fake tensors."""
    module = load(path)
    for name, comment in declarations(path):
        target = getattr(module, name)
        given = arguments(target, comment)
        if isinstance(target, type):
            target = target().eval()
        if f"{path.stem}.{name}" in DATA_DEPENDENT:
            with pytest.raises(DataDependentOutputException):
                target(**given)
            continue
        yield f"{path.stem}.{name}", target(**given)
    if hasattr(module, "get_init_inputs"):
        yield f"{path.stem}.Model", module.Model(*module.get_init_inputs()).eval()(*module.get_inputs())


def test_there_are_samples_for_every_idiom() -> None:
    assert len(FILES) >= 14 + 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sample(path: Path) -> None:
    with _Recorder() as importing:
        load(path)
    assert importing.calls == [], "importing a sample must not compute"
    ran = 0
    declared = len(list(declarations(path))) + ("def get_init_inputs" in path.read_text())
    assert declared > 0, "a sample says its shapes"
    with FakeTensorMode(), torch.no_grad():
        for name, result in results(path):
            ran += 1
            assert isinstance(result, torch.Tensor)
            assert result.dtype.is_floating_point
            if path.parent == SAMPLES:
                assert result.dtype == torch.float16
            if name in SHAPES:
                assert tuple(result.shape) == SHAPES[name], name
    assert ran + len(DATA_DEPENDENT & {f"{path.stem}.{name}" for name, _ in declarations(path)}) == declared


def test_modules_agree_with_functions() -> None:
    """The module and the function of gated_mlp.py and of lora.py are one computation."""
    torch.manual_seed(0)
    x = torch.randn(3, 8)
    gated = load(SAMPLES / "gated_mlp.py")
    mlp = gated.GatedMLP(8, 16, torch.float32)
    torch.testing.assert_close(mlp(x), gated.gated_mlp(x, mlp.gate.weight.T, mlp.up.weight.T))
    adapters = load(SAMPLES / "lora.py")
    layer = adapters.LoRALinear(8, 16, 4, 8.0, torch.float32)
    expected = adapters.lora(x, layer.base.weight.T, layer.down.weight.T, layer.up.weight.T * 2.0)
    torch.testing.assert_close(layer(x), expected)


def test_expanded_attention_is_grouped_attention() -> None:
    torch.manual_seed(0)
    module = load(SAMPLES / "gqa_attention.py")
    q, k, v = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    stacked = module.gqa_attention(q.view(2, 6, 8), k[0], v[0])
    torch.testing.assert_close(module.gqa_attention_expanded(q, k, v).reshape(2, 6, 8), stacked)


def test_llama_attention_does_not_see_the_scale_of_its_input() -> None:
    """The norm before it takes the scale away."""
    torch.manual_seed(0)
    module = load(SAMPLES / "llama_block.py")
    config = module.Config(hidden=32, intermediate=64, heads=4, kv_heads=2, eps=0.0, dtype=torch.float32)
    block = module.LlamaBlock(config).eval()
    assert isinstance(block, nn.Module)
    x = torch.randn(1, 6, 32)
    cos, sin = module.rotary_tables(6, config.head_dim, config.rope_theta, x)
    attended = block.attention(block.input_norm(x), cos, sin)
    torch.testing.assert_close(attended, block.attention(block.input_norm(100 * x), cos, sin), rtol=1e-3, atol=1e-5)
