"""Rewrites by the laws of sums, products and quotients."""

from __future__ import annotations

from tests.trust.rewrites.sites import Site, each, rewrite


def _swapped(site: Site) -> str | None:
    op = site.op
    if op["kind"] in ("add", "mul", "max", "dot") and op["inputs"][0] != op["inputs"][1]:
        return site.copy(op, *op["inputs"][::-1])
    return None


def _from_left(site: Site) -> str | None:
    """(a∘b)∘c = a∘(b∘c)"""
    op = site.op
    if op["kind"] in ("add", "mul", "max") and site.of(op["inputs"][0])["kind"] == op["kind"]:
        a, b = site.of(op["inputs"][0])["inputs"]
        return site.add(op["kind"], a, site.add(op["kind"], b, op["inputs"][1]))
    return None


def _from_right(site: Site) -> str | None:
    """a∘(b∘c) = (a∘b)∘c"""
    op = site.op
    if op["kind"] in ("add", "mul", "max") and site.of(op["inputs"][1])["kind"] == op["kind"]:
        b, c = site.of(op["inputs"][1])["inputs"]
        return site.add(op["kind"], site.add(op["kind"], op["inputs"][0], b), c)
    return None


def _product_over_sum(site: Site) -> str | None:
    """a(b + c) = ab + ac"""
    op = site.op
    if op["kind"] in ("mul", "dot"):
        for a, inner in (op["inputs"], op["inputs"][::-1]):
            if site.of(inner)["kind"] == "add":
                b, c = site.of(inner)["inputs"]
                return site.add("add", site.copy(op, a, b), site.copy(op, a, c))
    return None


def _quotient_over_sum(site: Site) -> str | None:
    """(b + c)/a = b/a + c/a"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][0])["kind"] == "add":
        b, c = site.of(op["inputs"][0])["inputs"]
        return site.add("add", site.add("div", b, op["inputs"][1]), site.add("div", c, op["inputs"][1]))
    return None


def _common_factor(site: Site) -> str | None:
    """ab + ac = a(b + c)"""
    op = site.op
    if op["kind"] == "add" and all(site.of(name)["kind"] == "mul" for name in op["inputs"]):
        (a, b), (c, d) = (site.of(name)["inputs"] for name in op["inputs"])
        for one, x, other, y in ((a, b, c, d), (a, b, d, c), (b, a, c, d), (b, a, d, c)):
            if one == other:
                return site.add("mul", one, site.add("add", x, y))
    return None


def _square_of_sum(site: Site) -> str | None:
    """(a + b)² = a² + 2ab + b²"""
    op = site.op
    if op["kind"] == "mul" and op["inputs"][0] == op["inputs"][1] and site.of(op["inputs"][0])["kind"] == "add":
        a, b = site.of(op["inputs"][0])["inputs"]
        twice = site.add("mul", site.number(2.0), site.add("mul", a, b))
        return site.add("add", site.add("add", site.add("mul", a, a), twice), site.add("mul", b, b))
    return None


def _by_reciprocal(site: Site) -> str | None:
    """a/b = a·(1/b)"""
    op = site.op
    if op["kind"] == "div":
        return site.add("mul", op["inputs"][0], site.add("div", site.number(1.0), op["inputs"][1]))
    return None


def _quotients_in_turn(site: Site) -> str | None:
    """x/(yz) = x/y/z"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][1])["kind"] == "mul":
        y, z = site.of(op["inputs"][1])["inputs"]
        return site.add("div", site.add("div", op["inputs"][0], y), z)
    return None


def _one_quotient(site: Site) -> str | None:
    """x/y/z = x/(yz)"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][0])["kind"] == "div":
        x, y = site.of(op["inputs"][0])["inputs"]
        return site.add("div", x, site.add("mul", y, op["inputs"][1]))
    return None


def _product_before_quotient(site: Site) -> str | None:
    """(a/b)c = (ac)/b"""
    op = site.op
    if op["kind"] == "mul":
        for one, c in (op["inputs"], op["inputs"][::-1]):
            if site.of(one)["kind"] == "div":
                a, b = site.of(one)["inputs"]
                return site.add("div", site.add("mul", a, c), b)
    return None


def _quotient_before_product(site: Site) -> str | None:
    """(ab)/c = a(b/c)"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][0])["kind"] == "mul":
        a, b = site.of(op["inputs"][0])["inputs"]
        return site.add("mul", a, site.add("div", b, op["inputs"][1]))
    return None


def _difference_turned(site: Site) -> str | None:
    """a + b = −(−a − b)"""
    op = site.op
    if op["kind"] == "add":
        minus = site.number(-1.0)
        a, b = (site.add("mul", minus, name) for name in op["inputs"])
        return site.add("mul", minus, site.add("add", a, b))
    return None


def _negated_twice(site: Site) -> str | None:
    op = site.op
    if op["kind"] in ("mul", "add", "div", "dot", "exp"):
        return site.add("mul", site.number(-1.0), site.add("mul", site.number(-1.0), site.copy(op, *op["inputs"])))
    return None


def _squares_difference(site: Site) -> str | None:
    """xy = ((x + y)² − (x − y)²)/4"""
    op = site.op
    if op["kind"] == "mul" and op["inputs"][0] != op["inputs"][1]:
        x, y = op["inputs"]
        if "const" in (site.of(x)["kind"], site.of(y)["kind"]):
            return None
        total, less = site.add("add", x, y), site.add("add", x, site.add("mul", site.number(-1.0), y))
        squares = site.add("mul", total, total), site.add("mul", less, less)
        difference = site.add("add", squares[0], site.add("mul", site.number(-1.0), squares[1]))
        return site.add("mul", difference, site.number(0.25))
    return None


FORMS = {
    "commuted": (_swapped,),
    "reassociated": (_from_left, _from_right),
    "distributed": (_product_over_sum, _quotient_over_sum),
    "factored": (_common_factor,),
    "squares_expanded": (_square_of_sum, _squares_difference),
    "by_reciprocal": (_by_reciprocal,),
    "quotients_merged": (_quotients_in_turn, _one_quotient),
    "quotients_moved": (_product_before_quotient, _quotient_before_product),
    "signs": (_difference_turned, _negated_twice),
}
for _name, _forms in FORMS.items():
    rewrite(_name, each(*_forms))
