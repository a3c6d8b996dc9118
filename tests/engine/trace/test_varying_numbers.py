"""Numbers that are others at the next call: which of them a region takes as they come, and which it is guarded by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from mugraph.ir.numbers import called, number_in, said
from mugraph.ir.region import Region
from mugraph.trace.codec import trace_from_json, trace_to_json

from tests.engine.trace.partition import Regions, only

HEAD = "# mugraph: x={kind}[4, 64], y={kind}[4, 64], t=0.5, n=3\ndef program(x, y, t, n, scale=2.0):\n"

VARIES: Mapping[str, tuple[tuple[str, ...], set[str]]] = {
    "a factor": (("return (x * t + y).tanh() * y",), {"t"}),
    "on the left": (("return (t * x + y).tanh() / t",), {"t"}),
    "a whole number": (("return (x + y).tanh() * (y / n)",), {"n"}),
    "subtracted from": (("return (t - x).tanh() * (2.0 / (t + y.exp()))",), {"t"}),
    "keywords": (("return torch.add(x, y, alpha=-t).tanh().addcmul(x, y, value=t)",), {"t", "-t"}),
    "divided by": (("return torch.rsub(x, y, alpha=t).tanh().addcdiv(x, y.exp(), value=1 - t)",), {"t", "1 - t"}),
    "mixed": (("return torch.lerp(x, y, t).tanh() * y",), {"t"}),
    "a bias correction": (("return (x / (1 - 0.9**n) + y / math.sqrt(1 - 0.99**n)).tanh()",),
                          {"1 - 0.9 ** n", "_math.sqrt(1 - 0.99 ** n)"}),
    "a name before": (("rate = t * scale / n", "print('begun')", "return (x * rate + y).tanh() * y"), {"rate"}),
    "a name inside": (("z = x.tanh()", "rate = t / n", "return (z * rate + y).tanh()"), {"t / n"}),
    "changed": (("t *= 2", "t += 1.0", "z = (x * t).tanh()", "return z * y"), {"t"}),
    "in a loop": (("for _ in range(2):", "    x = (x * t + y).tanh()", "return x"), {"t"}),
    "by a function": (("def f(z, by):", "    return (z * by + y).tanh()", "return f(x, t * 2)"), {"t * 2"}),
    "around a function": (("twice = t * 2", "def f(z):", "    return (z * twice + y).tanh()", "return f(x)"),
                          {"twice"}),
    "in a table": (("kept = {'rate': t * 3}", "return (x * kept['rate'] + y).tanh()"), {"kept['rate']"}),
    "as a float": (("return (x * float(t) + y).tanh()",), {"t"}),
    "asked for its class": (("if not isinstance(t, float):", "    raise TypeError", "return (x * t + y).tanh()"),
                            {"t"}),
}  # fmt: skip

STAYS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "a truth": (("x = x if n else y", "return (x * n + y).tanh()"), "n == 3"),
    "an exponent": (("return (x.exp() ** t + y).tanh()",), "t == 0.5"),
    "an exponent of a number": (("return (t ** x + y).tanh()",), "t == 0.5"),
    "a shape": (("return (x.view(n + 1, -1) * n + y.view(4, -1)).tanh()",), "n == 3"),
    "an index": (("return (x[:n].tanh() * y[:n]).sum(0)",), "n == 3"),
    "an item": (("k = [1.0, 2.0, 3.0, 4.0][n]", "return (x * k + y * n).tanh()"), "n == 3"),
    "a key": (("k = {3: 0.5, 4: 0.25}[n]", "return (x * k + y * n).tanh()"), "n == 3"),
    "a part of a list": (("k = [1.0, 2.0, 3.0, 3.0][n - 1 : n][0]", "return (x * k + y * n).tanh()"), "n == 3"),
    "stored by": (("k = [1.0, 2.0, 3.0, 3.0, 0.0]", "k[n] = 0.5", "return (x * k[0] + y * n).tanh()"), "n == 3"),
    "a length": (("k = 2.0 if len('-' * n) > 1 else 1.0", "return (x * k + y * n).tanh()"), "n == 3"),
    "in some": (("k = 2.0 if n in range(1, 9) else 1.0", "return (x * k + y * n).tanh()"), "n == 3"),
    "beside others": (("k = 2.0 if (2.5, 1) < (n, 2) else 1.0", "return (x * k + y * n).tanh()"), "n == 3"),
    "of its own methods": (("k = 2.0 if t.is_integer() else 1.0", "return (x * k + y * t).tanh()"), "t == 0.5"),
    "in words": (("k = 2.0 if '%.1f' % t else 1.0", "return (x * k + y * t).tanh()"), "t == 0.5"),
    "as a tensor": (("return (x * torch.tensor(t) + y).tanh()",), "t == 0.5"),
    "rounded": (("return (x * round(t * 4) + y).tanh()",), "t == 0.5"),
    "whole": (("return (x * (n // 2) + y).tanh()",), "n == 3"),
    "the larger": (("return (x * max(t, 0.1) + y).tanh()",), "t == 0.5"),
    "counted to": (("for _ in range(n):", "    x = (x * n + y).tanh()", "return x"), "n == 3"),
    "printed": (("k = len(f'{t}')", "return (x * t + y).tanh() * k"), "t == 0.5"),
    "a bound": (("return (x.clamp(max=t) + y).tanh()",), "t == 0.5"),
    "in an alias": (("f = math.floor", "return (x * f(t * 4) + y).tanh()"), "t == 0.5"),
    "to be floored": (("return torch.div(x, t, rounding_mode='floor') + y.tanh() * x",), "t == 0.5"),
    "filled": (("return (torch.full_like(x, t) * x + y).tanh()",), "t == 0.5"),
    "a default": (("return (x * scale + y).tanh()",), "scale == 2.0"),
}  # fmt: skip


COMPARED: Mapping[str, tuple[tuple[str, ...], set[str]]] = {
    "greater": (("x = x.tanh()", "if t > 0.1:", "    x = x + 1"), {"t > 0.1"}),
    "the other way": (("x = x.tanh()", "if 2 >= n:", "    x = x + 1"), {"not 2 >= n"}),
    "not the last": (("x = x.tanh()", "if n == len(x) + 3:", "    x = x + 1"), {"not n == 7"}),
    "the last but one": (("x = x.tanh()", "if n < 4:", "    x = x + 1"), {"n < 4"}),
    "computed": (("x = x.tanh()", "k = n - 1", "x = x + 1 if k * 2 >= t else x"), {"((n - 1) * 2) >= t"}),
    "between": (("x = x.tanh()", "if 0 < t <= 1.5 < n:", "    x = x + 1"), {"0 < t", "t <= 1.5", "1.5 < n"}),
    "not between": (("x = x.tanh()", "if 1 < t <= n:", "    x = x + 1"), {"not 1 < t"}),
    "without an end": (("x = x.tanh()", "if t < math.inf:", "    x = x + 1"), {"t < _math.inf"}),
    "in a comprehension": (("x = x.tanh()", "k = [z < n < 9 for z in (1, 8)]", "x = x + sum(k)"),
                           {"1 < n", "n < 9", "not 8 < n"}),
    "by a function": (("def f(z, by):", "    return z + 1 if by > 2.5 else z", "x = f(x.tanh(), n + t)"),
                      {"(n + t) > 2.5"}),
}  # fmt: skip


def text_of(lines: tuple[str, ...], kind: str = "f32") -> str:
    return "import math\n\n\n" + HEAD.format(kind=kind) + "".join(f"    {line}\n" for line in lines)


def numbers(region: Region) -> set[str]:
    return {text for one in region.live_ins if (text := number_in(one.expression)) is not None}


@pytest.mark.parametrize("name", VARIES)
def test_a_number_that_is_only_computed_with_varies(name: str, regions: Regions) -> None:
    lines, wanted = VARIES[name]
    found = regions(text_of(lines))
    assert set[str]().union(*map(numbers, found)) == wanted
    assert not any(re_read(guard) for region in found for guard in region.guards)
    for region in found:
        assert all(region.values[value].shape == () for value in region.numbers)


def re_read(guard: str) -> bool:
    """Whether a guard asks for a number."""
    return guard.partition(" ")[0] in ("t", "n", "rate", "twice", "kept['rate']")


@pytest.mark.parametrize("name", COMPARED)
def test_of_a_comparison_the_result_is_guarded(name: str, regions: Regions) -> None:
    lines, wanted = COMPARED[name]
    region = only(regions(text_of((*lines, "return (x * t + y / n).tanh()"))))
    assert numbers(region) == {"t", "n"}
    assert wanted <= set(region.guards)
    assert not {"t == 0.5", "n == 3"} & set(region.guards)


def test_only_where_other_numbers_compare_otherwise_it_is_the_number(regions: Regions) -> None:
    lines = ("x = x.tanh()", "if n == 3 and t > 0.1:", "    x = x + 1", "return (x * n + y * t).tanh()")
    region = only(regions(text_of(lines)))
    assert numbers(region) == {"t"}
    assert {"n == 3", "t > 0.1"} <= set(region.guards)


def test_a_comparison_before_is_no_condition(regions: Regions) -> None:
    lines = ("last = n >= 7", "print(last)", "x = (x * t).tanh() * y", "return x + 1 if last else x * n")
    region = only(regions(text_of(lines)))
    assert region.guards == ("last is False",)
    assert numbers(region) == {"t", "n"}


def test_what_stays_in_place_in_a_chain_decides(regions: Regions) -> None:
    lines = ("x = x.tanh()", "if 0 < n < (top := 9):", "    x = x + top", "return (x * t + y * n).tanh()")
    region = only(regions(text_of(lines)))
    assert numbers(region) == {"t"}
    assert "n == 3" in region.guards


def test_the_end_of_a_chain_is_evaluated_where_it_is_needed(regions: Regions) -> None:
    lines = ("x = x.tanh()", "if 9 < n < 1 / 0:", "    x = x + 1", "return (x * t + y * n).tanh()")
    assert "not 9 < n" in only(regions(text_of(lines))).guards


@pytest.mark.parametrize("name", STAYS)
def test_a_number_that_decides_anything_is_guarded(name: str, regions: Regions) -> None:
    lines, guard = STAYS[name]
    region = regions(text_of(lines))[0]
    assert not numbers(region)
    read = guard.partition(" ")[0]
    k = [one for one in region.guards if one.startswith("k ==")]  # what follows from it, before the region
    assert guard in region.guards or (k and read not in region.text)


@pytest.mark.parametrize("kind", ["f64", "i32"])
def test_beside_other_types_it_is_guarded(kind: str, regions: Regions) -> None:
    region = only(regions(text_of(("return (x * t + y).tanh() * y",), kind)))
    assert not numbers(region)
    assert "t == 0.5" in region.guards


def test_beside_half_precision_small_numbers_are_left_out(regions: Regions) -> None:
    region = only(regions(text_of(("return (x * t + y).tanh() * y",), "f16")))
    assert [one.expression for one in region.live_ins if one.value in region.numbers] == ["_number(t, x, True)"]


def test_what_keeps_a_root_from_zero_is_guarded(regions: Regions) -> None:
    region = only(
        regions(
            """
            # mugraph: x=f32[4, 64], eps=1e-6, t=0.5
            def program(x, eps, t):
                return x * t * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
            """
        )
    )
    assert numbers(region) == {"t"}
    assert region.guards == ("eps == 1e-06",)


def test_one_decides_and_the_other_varies(regions: Regions) -> None:
    lines = ("if n == 3:", "    y = y + 1", "return (x * t + y * n).tanh() * y")
    region = only(regions(text_of(lines)))
    assert numbers(region) == {"t"}
    assert region.guards == ("n == 3",)


def test_a_number_that_ends_a_constant_is_read(regions: Regions) -> None:
    """A mask times a number is no mask whose numbers are known."""
    region = only(regions(text_of(("mask = torch.tril(torch.ones(64, 64)) * t", "return (x @ mask + y).tanh() * y"))))
    assert numbers(region) == {"t"}
    scaled = next(call.outputs[0] for call in region.calls if region.numbers & set(map(id_of, call.args)))
    assert region.values[scaled].triangle is None


def id_of(argument: object) -> int:
    return getattr(argument, "value", -1)


def test_generators_hide_what_they_do_with_a_number(regions: Regions) -> None:
    found = regions(
        """
        def rates(n):
            yield 0.9**n
            yield 2.0 if n > 2 else 1.0


        # mugraph: x=f32[4, 64], n=3
        def program(x, n):
            one, two = rates(n)
            return (x * one).tanh() * two
        """
    )
    assert not any(map(numbers, found))


COUNTING = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = {count}
        self.fixed = 0.25

    # mugraph: x=f32[4, 64]
    def forward(self, x):
        self.count {change}
        return (x * self.fixed).tanh() / self.count
"""


@pytest.mark.parametrize(("count", "change"), [("2", "+= 1"), ("0.5", "*= 0.9"), ("7", "= self.count + 2")])
def test_an_attribute_that_methods_set_varies(count: str, change: str, regions: Regions) -> None:
    region = only(regions(COUNTING.format(count=count, change=change)))
    assert numbers(region) == {"self.count"}
    assert region.guards == ("self.fixed == 0.25",)


def test_a_constant_of_before_is_no_part_of_what_is_computed_from_a_number(regions: Regions) -> None:
    """`base` was made with a number that the region does not read: it must have a name itself."""
    found = regions(
        """
        # mugraph: x=f32[4, 64], t=0.5
        def program(x, t, by=3.0):
            base = t * by
            by = 7.0
            kept = [base]
            base = None
            y = x.tanh()
            return (y * kept[0]).tanh()
        """
    )
    for region in found:
        assert numbers(region) <= {"kept[0]"}


def test_a_trace_with_numbers_survives_its_way_out_of_the_child(trace) -> None:
    found = trace(text_of(("return (x * t + y).tanh() * y",)))
    again = trace_from_json(trace_to_json(found))
    assert again.regions == found.regions
    assert [region.numbers for region in again.regions] == [region.numbers for region in found.regions]


def test_expressions_of_numbers_and_of_tensors() -> None:
    assert number_in("_number(-(lr / n), p, True)") == "-(lr / n)"
    assert number_in("self.norm.weight") is None
    assert said("_number(_math.sqrt(n), p)") == "the number math.sqrt(n), which may vary"
    assert called("_number(self.rate, p)") == "self.rate"
    assert called("_number(1 - rate, p)") == "number"
    assert said("x") == called("x") == "x"
