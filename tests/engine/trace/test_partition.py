"""Which statements and expressions become replacement units, and what crosses their borders."""

from __future__ import annotations

from mugraph.ir.region import Ref

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
    assert "_is(self.norms[1], 'Norm')" in region.guards
    assert "_is(self.linear, 'torch.nn.modules.linear.Linear')" in region.guards


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


def test_no_region_begins_at_an_elif(regions: Regions) -> None:
    """No other statement can stand there; in a block that it is alone in, one can."""
    found = regions("""
        # mugraph: x=f32[4, 8]
        def joined(x):
            if x.requires_grad:
                y = x
            elif x.shape[0] > 5:
                y = x + 1
            elif x.shape[0] > 2:
                y = torch.tanh(x) + x.mean(-1, keepdim=True)
            else:
                y = x * 2
            return y

        # mugraph: x=f32[4, 8]
        def nested(x):
            if x.requires_grad:
                y = x
            else:
                if x.shape[0] > 5:
                    y = x + 1
                else:
                    y = torch.tanh(x) + x.mean(-1, keepdim=True)
            return y
        """)
    texts = {region.function: region.text for region in found}
    assert texts["joined"] == "y = torch.tanh(x) + x.mean(-1, keepdim=True)"
    assert texts["nested"].startswith("if x.shape[0] > 5:")
