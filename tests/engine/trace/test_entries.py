"""Where shapes come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.shapes import BadShapes, Expression, TensorSpec, parse_description, parse_spec
from mugraph.trace.syntax.source import Source

LINEAR = """
    class Block(nn.Module):
        def __init__(self, size=8):
            super().__init__()
            self.linear = nn.Linear(size, size, bias=False)

        def forward(self, x):
            return self.linear(x)
"""


def test_descriptions() -> None:
    said = parse_description(["x=f16[b, 2 * b + 1], causal=True, b=16", "pair=(f32[2], i64[3]), init(dim=64)"])
    assert said.arguments["x"] == TensorSpec("f16", (16, 33))
    assert said.arguments["causal"] == Expression("True")
    assert said.arguments["pair"] == (TensorSpec("f32", (2,)), TensorSpec("i64", (3,)))
    assert said.init == {"dim": Expression("64")}
    assert parse_spec("bf16[1]") == TensorSpec("bf16", (1,))
    with pytest.raises(BadShapes, match="no size"):
        parse_spec("f16[n]")


def test_a_tensor_without_dimensions() -> None:
    said = parse_description(["scale=f32[], x=f16[4], other=f32, places=[]"]).arguments
    assert said["scale"] == said["other"] == TensorSpec("f32", ())
    assert said["places"] == ()


def test_a_comment_above_a_decorator_and_between_other_comments() -> None:
    text = "# mugraph: x=f32[4]\n# about f\n# mugraph: y=f32[5]\n@wrap\ndef f(x, y):\n    return x\n"
    (entry,) = find_definitions(Source("f.py", text)).entries
    assert dict(entry.arguments) == {"x": TensorSpec("f32", (4,)), "y": TensorSpec("f32", (5,))}


def test_a_comment_with_a_gap_describes_nothing() -> None:
    assert find_definitions(Source("f.py", "# mugraph: x=f32[4]\n\ndef f(x):\n    return x\n")).entries == ()


def test_text_in_a_string_is_no_comment() -> None:
    text = 'NOTE = """\n# mugraph: x=f32[4]\n"""\ndef f(x):\n    return x\n'
    assert find_definitions(Source("f.py", text)).entries == ()


def dtype_of(region: Region, expression: str) -> str:
    (value,) = (named.value for named in region.live_ins if named.expression == expression)
    return region.values[value].dtype


def test_a_class_takes_the_dtype_of_its_inputs(trace: Callable[..., Trace]) -> None:
    (region,) = trace(LINEAR.replace("    class", "    # mugraph: x=bf16[4, 8]\n    class", 1)).regions
    assert dtype_of(region, "self.linear.weight") == "bf16"


def test_shared_parameters_stay_shared_when_cast(trace: Callable[..., Trace]) -> None:
    source = LINEAR.replace("return self.linear(x)", "return self.linear(x) @ self.other.weight").replace(
        "bias=False)", "bias=False)\n            self.other = nn.Linear(size, size)\n"
        "            self.other.weight = self.linear.weight", 1
    )  # fmt: skip
    (region,) = trace(source.replace("    class", "    # mugraph: x=f16[4, 8]\n    class", 1)).regions
    assert len(region.live_ins) == 2


def test_a_comment_above_a_method(trace: Callable[..., Trace]) -> None:
    source = (
        LINEAR + "\n        # mugraph: x=f32[2, 8]\n        def twice(self, x):\n            return self(self(x))\n"
    )
    found = [region for region in trace(source).regions if region.status is None]
    assert [region.function for region in found] == ["Block.twice"]


def test_constructor_arguments_are_evaluated_in_the_file(trace: Callable[..., Trace]) -> None:
    source = "SIZE = 16\n\n\n" + "\n".join(line[4:] for line in LINEAR.splitlines())
    source = source.replace("class Block", "# mugraph: x=f32[4, 16], init(size=SIZE)\nclass Block")
    (region,) = trace(source).regions
    assert region.values[region.live_ins[1].value].shape == (16, 16)


def test_jaxtyping_annotations_with_sizes_from_a_comment(trace: Callable[..., Trace]) -> None:
    (region,) = trace("""
        from jaxtyping import Float, Float16
        from torch import Tensor

        # mugraph: b=4
        def f(x: Float16[Tensor, "b 8"], w: "Float16[Tensor, '8 2*b']", bias: Float16[Tensor, "2*b"] | None = None):
            y = x @ w
            return y if bias is None else y + bias
        """).regions
    shapes = {named.expression: region.values[named.value].shape for named in region.live_ins}
    assert shapes == {"x": (4, 8), "w": (8, 8), "bias": (8,)}


def test_jaxtyping_without_sizes_says_what_is_missing(trace: Callable[..., Trace]) -> None:
    (region,) = trace("""
        from jaxtyping import Float
        from torch import Tensor

        def f(x: Float[Tensor, "b 8"]):
            return x @ x.T
        """).regions
    assert region.status == "needs-shapes"
    assert "“b=16”" in (region.reason or "")


def test_kernelbench_files(trace: Callable[..., Trace]) -> None:
    (region,) = trace("""
        class Model(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.linear = nn.Linear(size, size)

            def forward(self, x):
                return torch.sigmoid(self.linear(x)).sum(dim=1)

        size = 8

        def get_inputs():
            return [torch.rand(4, size)]

        def get_init_inputs():
            return [size]
        """).regions
    assert region.text == "torch.sigmoid(self.linear(x)).sum(dim=1)"


def test_kernelbench_files_with_keyword_arguments(trace: Callable[..., Trace]) -> None:
    (region,) = trace("""
        class Model(nn.Module):
            def __init__(self, size, bias=True):
                super().__init__()
                self.linear = nn.Linear(size, size, bias=bias)

            def forward(self, x):
                return self.linear(x)

        def get_inputs():
            return [torch.rand(4, 8)]

        def get_init_inputs():
            return [[8], {"bias": False}]
        """).regions
    assert len(region.live_ins) == 2


def test_recorded_shapes(trace: Callable[..., Trace]) -> None:
    seen = {"f": {"x": "f16[4, 8]", "w": "f16[8, 2]"}, "Block.forward": {"x": "f32[3, 8]"}}
    found = trace("    def f(x, w):\n        return x @ w\n" + LINEAR, recorded_shapes=seen)
    assert [(region.function, region.status) for region in found.regions] == [("f", None), ("Block.forward", None)]
    assert found.regions[1].values[0].shape == (3, 8)


def test_a_comment_counts_before_what_was_recorded(trace: Callable[..., Trace]) -> None:
    source = "# mugraph: x=f32[2, 8]\ndef f(x):\n    return x @ x.T\n"
    (region,) = trace(source, recorded_shapes={"f": {"x": "f32[5, 8]"}}).regions
    assert region.values[0].shape == (2, 8)


SEVERAL = """
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return self.down(self.inner(x))

        def inner(self, x):
            return F.silu(self.up(x))

        def encode(self, x):
            return self.up(x) * 0.5
    """


def test_recorded_methods_are_traced_by_themselves(trace: Callable[..., Trace]) -> None:
    """But for those that other methods call: their code is traced there."""
    seen = {name: {"x": "f32[3, 8]"} for name in ("Block.forward", "Block.inner", "Block.encode")}
    found = trace(SEVERAL, recorded_shapes={**seen, "Block.__init__": {"width": "8"}})
    assert found.errors == ()
    assert [(region.function, region.status) for region in found.regions] == [
        ("Block.forward", None),
        ("Block.encode", None),
    ]


def test_a_recorded_method_needs_no_forward(trace: Callable[..., Trace]) -> None:
    recorded = {"Block.encode": {"x": "f32[3, 8]"}, "Block.__init__": {"width": "8"}}
    regions = trace(SEVERAL, recorded_shapes=recorded).regions
    assert ("Block.encode", None) in [(region.function, region.status) for region in regions]


def test_constructors_may_read_numbers(trace: Callable[..., Trace]) -> None:
    (region,) = trace("""
        # mugraph: x=f32[4, 8]
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.rates = [rate.item() for rate in torch.linspace(0.5, 1.0, 3)]
                self.linear = nn.Linear(8, 8)

            def forward(self, x):
                return self.linear(x) * self.rates[1]
        """).regions
    assert "self.rates[1] == 0.75" in region.guards
