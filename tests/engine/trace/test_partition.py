"""Which statements and expressions become replacement units, and what crosses their borders."""

from __future__ import annotations

from mugraph.trace.region import Ref, Symbol

from tests.engine.trace.partition import Regions, ins, only, outs, targets


def test_statements_up_to_the_return_are_one_unit(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            y = torch.tanh(y)
            return y * 2
        """)
    )
    assert region.unit == "statements"
    assert region.text == "y = x @ w\n    y = torch.tanh(y)\n    return y * 2"
    assert (ins(region), outs(region)) == (["x", "w"], ["return"])
    assert targets(region) == ["Tensor.matmul", "torch.tanh", "Tensor.mul"]
    assert region.function_args == ("x", "w")


def test_a_lone_return_is_an_expression_unit(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return torch.softmax(x @ w, dim=-1)
        """)
    )
    assert (region.unit, region.text, outs(region)) == ("expression", "torch.softmax(x @ w, dim=-1)", [""])
    assert region.calls[1].args == (Ref(region.calls[0].outputs[0]),)
    assert region.calls[1].kwargs == {"dim": -1}


def test_a_returned_tuple_of_tensors_leaves_the_region_one_by_one(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            h = torch.tanh(x)
            return h, h @ w
        """)
    )
    assert (region.unit, outs(region)) == ("statements", ["return", "return"])
    assert [out.value for out in region.live_outs] == [call.outputs[0] for call in region.calls]


def test_a_returned_tuple_with_something_else_in_it_is_taken_apart(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return x.shape[0], torch.softmax(x @ w, dim=-1)
        """)
    )
    assert (region.unit, region.text) == ("expression", "torch.softmax(x @ w, dim=-1)")


def test_statements_that_only_read_shapes_stay_outside_its_ends(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[2, 3, 8], w=f32[8, 8]
        def f(x, w):
            b, s, d = x.shape
            y = x.reshape(b * s, d)
            n = y.shape[0]
            y = y @ w
            return y.view(b, s, d)
        """)
    )
    assert region.text.startswith("y = x.reshape(b * s, d)")
    assert {"b == 2", "s == 3", "d == 8"} <= set(region.guards)


def test_a_print_ends_a_region(regions: Regions) -> None:
    first, second = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            print("between")
            z = y @ w
            return z + y
        """)
    assert (first.text, outs(first)) == ("y = x @ w", ["y"])
    assert (second.text, ins(second)) == ("z = y @ w\n    return z + y", ["y", "w"])


def test_only_names_that_are_read_later_leave_a_region(regions: Regions) -> None:
    first, _ = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            a = x @ w
            b = a.exp()
            c = a + b
            print("between")
            return c @ w
        """)
    assert outs(first) == ["c"]


def test_a_number_that_is_read_later_splits_the_run(regions: Regions) -> None:
    first, second = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            n = y.shape[0]
            z = y @ w
            print(n)
            return z.sum() * n
        """)[:2]
    assert (first.text, second.text) == ("y = x @ w", "z = y @ w")


def test_parameters_of_inlined_modules_are_named_from_the_caller(regions: Regions) -> None:
    region = only(
        regions("""
        class Norm(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(size))
                self.eps = 1e-6

            def forward(self, x):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight

        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norms = nn.ModuleList([Norm(8), Norm(8)])
                self.linear = nn.Linear(8, 8)

            def forward(self, x):
                return self.linear(self.norms[1](x))
        """)
    )
    assert region.function == "Block.forward"
    assert ins(region) == ["x", "self.norms[1].weight", "self.linear.weight", "self.linear.bias"]
    assert "self.norms[1].eps == 1e-06" in region.guards
    assert "type(self.linear).__qualname__ == 'Linear'" in region.guards


def test_a_call_that_is_not_clean_is_entered(regions: Regions) -> None:
    region = only(
        regions("""
        def inner(x, w):
            y = (x @ w).relu()
            print("inside")
            return y

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return inner(x, w) + 1
        """)
    )
    assert (region.function, region.text) == ("inner", "y = (x @ w).relu()")


def test_a_loop_over_layers_is_one_region_for_all_of_them(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8]
        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
                self.scales = [1.0, 2.0, 4.0]

            def forward(self, x):
                for i, layer in enumerate(self.layers):
                    x = torch.tanh(layer(x)) @ self.layers[i].weight
                return x
        """)
    )
    assert region.text == "x = torch.tanh(layer(x)) @ self.layers[i].weight"
    assert (ins(region), outs(region)) == (["x", "self.layers[i].weight", "layer.bias"], ["x"])
    assert "i in (0, 1, 2)" in region.guards


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


def test_a_write_to_a_tensor_made_here_is_renaming(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            y = x @ w
            y += 1
            y.mul_(2)
            return F.relu(y, inplace=True)
        """)
    )
    assert targets(region) == ["Tensor.matmul", "Tensor.add", "Tensor.mul", "torch.nn.functional.relu"]
    assert "inplace" not in region.calls[-1].kwargs


def test_a_write_through_a_view_or_to_an_argument_ends_a_region(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def through_view(x, w):
            y = x @ w
            y[0].mul_(2)
            return y @ w

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def argument(x, w):
            x.add_(1)
            return x @ w
        """)
    assert [region.text for region in found] == ["y = x @ w", "y @ w", "x @ w"]


def test_random_numbers_and_custom_gradients_end_a_region(regions: Regions) -> None:
    found = regions("""
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            a = x @ w
            b = torch.rand_like(a)
            c = a @ w
            d = Twice.apply(c)
            return d @ w
        """)
    assert [region.text for region in found] == ["a = x @ w", "c = a @ w", "d @ w"]


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


def test_modules_with_hooks_are_no_part_of_a_region(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(8, 8)
                self.second = nn.Linear(8, 8)
                self.first.register_forward_hook(lambda module, args, out: out * 2)

            def forward(self, x):
                y = self.first(x)
                return self.second(y)
        """)
    assert [region.text for region in found] == ["self.second(y)"]


def test_devices_are_those_of_the_live_ins(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            return (x @ w) * torch.arange(8, device=x.device, dtype=x.dtype)
        """)
    )
    assert region.calls[1].kwargs == {"device": Symbol("device"), "dtype": Symbol("torch.float32")}


def test_a_live_out_of_numbers_that_nobody_names_is_refused(regions: Regions) -> None:
    """A tensor from a place that the function cannot name is no live-in."""
    found = regions("""
        def maker():
            hidden = torch.ones(8, 8)
            def get():
                return hidden
            return get

        get = maker()

        # mugraph: x=f32[4, 8]
        def f(x):
            y = x @ get()
            return y @ y.T
        """)
    assert [region.text for region in found] == ["y @ y.T"]


def test_the_wrapper_of_a_decorator_is_not_edited(regions: Regions) -> None:
    region = only(
        regions("""
        def scaled(function):
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs) * 2
            return wrapper

        @scaled
        def f(x, w):
            return x @ w

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def g(x, w):
            print("not clean")
            return [f(x, w)]
        """)
    )
    assert (region.function, region.text) in {("f", "x @ w"), ("g", "f(x, w)")}
