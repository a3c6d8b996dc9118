"""What a unit takes over from inside of callees, modules, lambdas and comprehensions."""

from __future__ import annotations

from mugraph.ir.region import Symbol

from tests.engine.trace.partition import Regions, ins, only, targets


def test_a_list_filled_inside_a_callee_is_private(regions: Regions) -> None:
    region = only(
        regions("""
        def heads(x, w):
            parts = []
            for i in range(2):
                parts.append(x[:, i * 4 : (i + 1) * 4] @ w)
            return torch.cat(parts, dim=-1)

        # mugraph: x=f32[4, 8], w=f32[4, 4]
        def f(x, w):
            return heads(x, w).softmax(-1)
        """)
    )
    assert (region.function, targets(region).count("Tensor.matmul")) == ("f", 2)


def test_a_list_that_outlives_the_call_is_not(regions: Regions) -> None:
    found = regions("""
        log = []

        def remember(x, w):
            y = x @ w
            log.append(y)
            return y

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return remember(x, w).softmax(-1)
        """)
    assert [(region.function, region.text) for region in found] == [("remember", "y = x @ w")]


def test_what_a_function_is_described_for_comes_before_what_another_calls_it_with(regions: Regions) -> None:
    """Of a recorded program that is the call that took longest, whatever is traced first. What only the other call
    reaches is found too."""
    found = regions("""
        log = []

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return inner(x, w, True) + 1

        # mugraph: x=f32[2, 8], w=f32[8, 8]
        def inner(x, w, more=False):
            y = x @ w
            log.append(y)
            if more:
                y = (y @ w).relu()
                log.append(y)
            return y
        """)
    shapes = [(region.function, region.text, region.values[region.live_ins[0].value].shape) for region in found]
    first, more = ("inner", "y = x @ w"), ("inner", "y = (y @ w).relu()")
    assert shapes == [(*first, (2, 8)), (*first, (4, 8)), (*more, (4, 8))]


def test_dead_calls_are_gone(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            unused = y.exp()
            return y + 1
        """)
    )
    assert targets(region) == ["Tensor.matmul", "Tensor.add"]


def test_attention_modules_are_seen_in_their_parts(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[2, 4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x):
                y, _ = self.attention(x, x, x, need_weights=False)
                return x + y
        """)
    )
    assert "torch.nn.functional.scaled_dot_product_attention" in targets(region)
    assert "self.attention.num_heads == 2" in region.guards
    assert "self.attention.training is False" in region.guards


def test_private_names_and_super_survive_instrumentation(regions: Regions) -> None:
    region = only(
        regions("""
        class Base(nn.Module):
            def forward(self, x):
                return x @ self.w

        # mugraph: x=f32[4, 8]
        class Derived(Base):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(8, 8))
                self.__scale = 3.0

            def forward(self, x):
                return super().forward(x) * self.__scale
        """)
    )
    assert "self._Derived__scale == 3.0" in region.guards


def test_names_in_a_lambda_mean_nothing_outside_it(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleDict({"up": nn.Linear(8, 16), "down": nn.Linear(16, 8)})
                m = self.parts
                self.mlp = lambda x: m.down(F.silu(m.up(x)))

            def forward(self, x):
                y = x + self.mlp(x)
                return y * 2
        """)
    )
    assert ins(region)[:3] == ["x", "self.parts['up'].weight", "self.parts['up'].bias"]
    assert region.calls[0].range.start == region.range.start.__class__(region.range.start.line, 16)


def test_names_in_a_comprehension_mean_nothing_outside_it(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], i=1
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.ws = nn.ParameterList([nn.Parameter(torch.randn(8, 8)) for _ in range(3)])

            def forward(self, x, i):
                parts = [x @ self.ws[i] for i in range(3)]
                return parts[0] + parts[1] @ self.ws[i] + parts[2]
        """)
    )
    assert ins(region) == ["x", "self.ws[0]", "self.ws[i]", "self.ws[2]"]


def test_python_types_as_dtypes(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 4]
        def f(x):
            mask = torch.ones(4, 4, device=x.device, dtype=bool).tril()
            return (x @ x).masked_fill(~mask, 0.0)
        """)
    )
    ones = next(call for call in region.calls if call.target == "torch.ones")
    assert ones.kwargs["dtype"] == Symbol("torch.bool")


def test_lines_of_several_statements(regions: Regions) -> None:
    """A kernel's call takes whole lines, or the value of one statement of a line."""
    found = regions("""
        log = []

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            log.append(1); y = x @ w
            z = y.relu(); log.append(z)
            z = z + 1
            z = z @ w; z = z.exp()
            log.append(z); return z.sum()
        """)
    assert [region.text for region in found] == ["x @ w", "z = z + 1\n    z = z @ w; z = z.exp()", "z.sum()"]
