"""What ends a region, or keeps code out of it."""

from __future__ import annotations

from tests.engine.trace.partition import Regions, ins, only, outs


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


def test_a_write_through_a_view_ends_a_region_and_one_to_an_argument_is_made_last(regions: Regions) -> None:
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
    assert [region.text for region in found] == ["y = x @ w", "y @ w", "x.add_(1)\n    return x @ w"]
    assert [call.target for call in found[-1].calls] == ["Tensor.add", "Tensor.matmul", "Tensor.copy_"]


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


def test_a_name_of_the_module_or_of_a_function_around_is_still_bound(regions: Regions) -> None:
    found = regions("""
        LATEST = None

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def of_module(x, w):
            global LATEST
            a = torch.tanh(x @ w)
            LATEST = torch.tanh(a)
            return a.softmax(-1)

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def of_function(x, w):
            kept = x

            def keep(t):
                nonlocal kept
                kept = t @ w
                return torch.tanh(t) + 1

            return keep(x) * kept

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def called(x, w):
            y = torch.tanh(x @ w)
            z = of_module(y, w)
            return z * 2
        """)
    assert found
    for region in found:
        assert not any(line.strip().startswith(("LATEST = ", "kept = ")) for line in region.text.splitlines()), region
        assert "of_module(" not in region.text
        assert "keep(" not in region.text


def test_a_name_that_a_function_reads_after_the_return_is_still_bound(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            act = lambda t: torch.tanh(t) + w.mean()
            w = act(w)
            out = x @ w
            return torch.tanh(out)
        """)
    assert found
    for region in found:
        assert not ("w" in outs(region) and "return" in outs(region)), region
