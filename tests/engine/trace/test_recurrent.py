"""Recurrent layers keep the shapes and the strides that PyTorch gives them, without being unrolled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ir.region import Trace
from mugraph.trace.run.recurrent import recurrent_by_shape
from torch._subclasses.fake_tensor import FakeTensorMode


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_shapes_and_strides_are_those_of_the_real_layer(
    kind: type[torch.nn.RNNBase], bidirectional: bool, batch_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = kind(5, 7, num_layers=2, bidirectional=bidirectional, batch_first=batch_first).eval()
    name = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind.__name__]
    function = getattr(torch, name)
    compared: list[int] = []

    def both(*args: object) -> object:
        out = function(*args)
        mode = FakeTensorMode()

        def fake(value: object) -> object:
            if isinstance(value, torch.Tensor):
                return mode.from_tensor(value.detach())
            return [fake(item) for item in value] if isinstance(value, list | tuple) else value

        guessed = recurrent_by_shape(f"torch.{name}", [fake(arg) for arg in args])
        assert guessed is not None
        assert [(one.shape, one.stride()) for one in guessed] == [(one.shape, one.stride()) for one in out]
        compared.append(len(out))
        return out

    namespace = torch.nn.modules.rnn._VF
    monkeypatch.setattr(namespace, name, both, raising=False)
    if kind is torch.nn.RNN:
        monkeypatch.setattr(torch.nn.modules.rnn, "_rnn_impls", {"RNN_TANH": both, "RNN_RELU": both}, raising=False)
    layer(torch.randn(3, 4, 5))
    assert compared == [3 if kind is torch.nn.LSTM else 2]


def test_what_follows_a_recurrent_layer_is_a_region(trace: Callable[..., Trace]) -> None:
    found = trace("""
        # mugraph: x=f32[4, 512, 8]
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(8, 16, num_layers=3, batch_first=True, bidirectional=True)
                self.head = nn.Linear(32, 4)

            def forward(self, x):
                h, _ = self.rnn(x)
                return torch.softmax(self.head(h), dim=-1)
        """)
    assert found.barriers["torch.gru"] == 1
    assert [region.text for region in found.regions] == ["torch.softmax(self.head(h), dim=-1)"]
