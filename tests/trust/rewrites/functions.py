"""Rewrites of functions: exponentials, sigmoids, masks, maxima by what they are made of."""

from __future__ import annotations

import math

from tests.trust.rewrites.sites import Site, each, rewrite


def _exp_of_halves(site: Site) -> str | None:
    """exp(x) = exp(x/2)²"""
    if site.op["kind"] != "exp":
        return None
    half = site.add("exp", site.add("mul", site.number(0.5), site.op["inputs"][0]))
    return site.add("mul", half, half)


def _exp_of_negative(site: Site) -> str | None:
    """exp(x) = 1/exp(−x)"""
    if site.op["kind"] != "exp":
        return None
    other = site.add("exp", site.add("mul", site.number(-1.0), site.op["inputs"][0]))
    return site.add("div", site.number(1.0), other)


def _exp_of_sum(site: Site) -> str | None:
    """exp(a + b) = exp(a)·exp(b)"""
    op = site.op
    if op["kind"] == "exp" and site.of(op["inputs"][0])["kind"] == "add":
        return site.add("mul", *(site.add("exp", name) for name in site.of(op["inputs"][0])["inputs"]))
    return None


def _exp_scaled(site: Site) -> str | None:
    """Where a quotient takes it out again: exp(x)·4"""
    return (
        None if site.op["kind"] != "exp" else site.add("mul", site.number(4.0), site.copy(site.op, *site.op["inputs"]))
    )


def _exp_shifted(site: Site) -> str | None:
    """Where a quotient takes it out again: exp(x + 1/2)"""
    if site.op["kind"] != "exp":
        return None
    return site.add("exp", site.add("add", site.number(0.5), site.op["inputs"][0]))


def _exp_shifted_by_largest(site: Site) -> str | None:
    """Where a quotient takes it out again, and all of a row is in one tile: exp(x − max x)"""
    op = site.op
    if op["kind"] != "exp" or not op["axes"]:
        return None
    x = op["inputs"][0]
    last = max(op["axes"], key=lambda axis: site.sizes[axis])
    largest = site.add("amax", x, over=[last])
    return site.add("exp", site.add("add", x, site.add("mul", site.number(-1.0), largest)))


def _sigmoid(site: Site, x: str) -> str:
    return site.add("unary", x, fn="sigmoid")


def _function_by_sigmoid(site: Site) -> str | None:
    op = site.op
    if op["kind"] != "unary":
        return None
    (x,) = op["inputs"]
    match op["fn"]:
        case "silu":
            return site.add("mul", x, _sigmoid(site, x))
        case "tanh":
            twice = site.add("mul", site.number(2.0), _sigmoid(site, site.add("mul", site.number(2.0), x)))
            return site.add("add", twice, site.number(-1.0))
        case _:
            return None


def _function_by_exp(site: Site) -> str | None:
    """silu(x) = x/(1 + exp(−x)), a sigmoid alike, tanh(x) = (1 − exp(−2x))/(1 + exp(−2x))"""
    op = site.op
    if op["kind"] != "unary" or op["fn"] not in ("silu", "sigmoid", "tanh"):
        return None
    (x,) = op["inputs"]
    slope = -2.0 if op["fn"] == "tanh" else -1.0
    small = site.add("exp", site.add("mul", site.number(slope), x))
    below = site.add("add", site.number(1.0), small)
    if op["fn"] == "tanh":
        above = site.add("add", site.number(1.0), site.add("mul", site.number(-1.0), small))
        return site.add("div", above, below)
    return site.add("div", x if op["fn"] == "silu" else site.number(1.0), below)


def _gelu_by_erf(site: Site) -> str | None:
    """gelu(x) = x·(1 + erf(x/√2))/2"""
    op = site.op
    if op["kind"] != "unary" or op["fn"] != "gelu":
        return None
    (x,) = op["inputs"]
    inner = site.add("unary", site.add("mul", site.number(math.sqrt(0.5)), x), fn="erf")
    return site.add("mul", site.add("mul", site.number(0.5), x), site.add("add", site.number(1.0), inner))


def _relu_by_maximum(site: Site) -> str | None:
    op = site.op
    if op["kind"] == "unary" and op["fn"] == "relu":
        return site.add("max", op["inputs"][0], site.number(0.0))
    return None


def _relu_scaled(site: Site) -> str | None:
    """relu(x) = relu(2x)/2"""
    op = site.op
    if op["kind"] == "unary" and op["fn"] == "relu":
        twice = site.add("unary", site.add("mul", site.number(2.0), op["inputs"][0]), fn="relu")
        return site.add("mul", site.number(0.5), twice)
    return None


def _abs_by_maximum(site: Site) -> str | None:
    op = site.op
    if op["kind"] == "unary" and op["fn"] == "abs":
        return site.add("max", op["inputs"][0], site.add("mul", site.number(-1.0), op["inputs"][0]))
    return None


def _abs_by_root(site: Site) -> str | None:
    op = site.op
    if op["kind"] == "unary" and op["fn"] == "abs":
        return site.add("sqrt", site.add("mul", op["inputs"][0], op["inputs"][0]))
    return None


def _maximum_shifted(site: Site) -> str | None:
    """max(a, b) = max(a + 1, b + 1) − 1"""
    op = site.op
    if op["kind"] != "max":
        return None
    one = site.number(1.0)
    more = site.add("max", *(site.add("add", one, name) for name in op["inputs"]))
    return site.add("add", site.number(-1.0), more)


def _by_complement(site: Site) -> str | None:
    """s·tril = s − s·triu(1): the other triangle's mask has rows and columns exchanged"""
    op = site.op
    if op["kind"] != "mul":
        return None
    for one, s in (op["inputs"], op["inputs"][::-1]):
        mask = site.of(one)
        if mask["kind"] == "mask":
            turned = {"rows": mask["columns"], "columns": mask["rows"], "value": -mask["value"] - 1.0}
            other = site.add("mask", **turned)
            return site.add("add", s, site.add("mul", site.number(-1.0), site.add("mul", s, other)))
    return None


def _masked_twice(site: Site) -> str | None:
    op = site.op
    if op["kind"] == "mul":
        for one, s in (op["inputs"], op["inputs"][::-1]):
            if site.of(one)["kind"] == "mask":
                return site.add("mul", one, site.add("mul", one, s))
    return None


FORMS = {
    "exp_split": (_exp_of_halves, _exp_of_negative, _exp_of_sum),
    "softmax_shifted": (_exp_scaled, _exp_shifted, _exp_shifted_by_largest),
    "function_by_sigmoid": (_function_by_sigmoid,),
    "function_by_exp": (_function_by_exp,),
    "gelu_by_erf": (_gelu_by_erf,),
    "relu_and_abs": (_relu_by_maximum, _relu_scaled, _abs_by_maximum, _abs_by_root),
    "maximum_shifted": (_maximum_shifted,),
    "mask_complement": (_by_complement, _masked_twice),
}
for _name, _forms in FORMS.items():
    rewrite(_name, each(*_forms))
