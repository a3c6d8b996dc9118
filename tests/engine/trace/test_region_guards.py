"""What must hold when a region runs: options, flags, iterations and devices that the trace has seen."""

from __future__ import annotations

from mugraph.ir.region import Symbol

from tests.engine.trace.partition import Regions, ins, only, targets


def test_iterations_that_differ_keep_the_first_behind_its_guard(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            for power in range(2):
                x = (x @ w) ** power
            return x
        """)
    )
    assert "power == 0" in region.guards


def test_a_branch_on_an_option_becomes_a_guard(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w, bias=None, causal=True):
            y = x @ w
            if bias is not None:
                y = y + bias
            if causal:
                y = y.tril()
            return y
        """)
    )
    assert targets(region) == ["Tensor.matmul", "Tensor.tril"]
    assert {"bias is None", "causal is True"} <= set(region.guards)


def test_a_tensor_that_is_only_looked_at_is_guarded(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8], like=f32[2, 4]
        def f(x, w, like):
            return (x @ w).view(like.shape[0], -1)
        """)
    )
    assert ins(region) == ["x", "w"]
    assert "tuple(like.shape) == (2, 4)" in region.guards


def test_dropout_counts_as_nothing_behind_its_training_flag(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 8)
                self.drop = nn.Dropout(0.1)

            def forward(self, x):
                return self.drop(self.linear(x))
        """)
    )
    assert targets(region) == ["torch.nn.functional.linear"]
    assert "self.drop.training is False" in region.guards


def test_devices_are_those_of_the_live_ins(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return (x @ w) * torch.arange(8, device=x.device, dtype=x.dtype)
        """)
    )
    assert region.calls[1].kwargs == {"device": Symbol("device"), "dtype": Symbol("torch.float32")}


def test_one_tensor_under_two_names_is_compared(regions: Regions) -> None:
    """Called with `y`, or with numbers that take the branch, the names are of two tensors."""
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w, y=None):
            skip = x if y is None else y
            print(skip.dtype)
            return torch.sigmoid(x @ w) * x + torch.tanh(skip)
        """)
    )
    assert "skip is x" in region.guards


def test_one_object_under_two_names_is_compared(regions: Regions) -> None:
    region = only(
        regions("""
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.scale = nn.Linear(8, 8), 2.0

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = Part()
                self.last = self.first

            # mugraph: x=f32[4, 8]
            def forward(self, x):
                part = self.first if x.shape[0] > 2 else Part()
                print(part)
                return torch.tanh(part.lin(x)) * self.last.scale
        """)
    )
    assert {"self.last is part", "part is self.last", "self.first is part"} & set(region.guards)
