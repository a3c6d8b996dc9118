"""Rewrites of constants: the same number by another route, and numbers through roots."""

from __future__ import annotations

import math

from tests.trust.rewrites.sites import Site, each, rewrite


def _value(site: Site) -> float | None:
    op = site.op
    return op["value"] if op["kind"] == "const" and isinstance(op["value"], int | float) and op["value"] else None


def _twice_half(site: Site) -> str | None:
    value = _value(site)
    return None if value is None else site.add("mul", site.number(2 * value), site.number(0.5))


def _thirds(site: Site) -> str | None:
    value = _value(site)
    return None if value is None else site.add("mul", site.number(value / 3), site.number(3.0))


def _sum_of_parts(site: Site) -> str | None:
    value = _value(site)
    return None if value is None else site.add("add", site.number(0.75 * value), site.number(0.25 * value))


def _inverse(site: Site) -> str | None:
    value = _value(site)
    return None if value is None else site.add("div", site.number(1.0), site.number(1 / value))


def _root(site: Site) -> str | None:
    value = _value(site)
    return None if value is None or value < 0 else site.add("sqrt", site.number(value * value))


def _square(site: Site) -> str | None:
    """c = √c·√c, rounded once"""
    value = _value(site)
    if value is None or value < 0:
        return None
    root = site.number(math.sqrt(value))
    return site.add("mul", root, root)


def _root_scaled(factor: float) -> object:
    def form(site: Site) -> str | None:
        """√s = √(k²s)/k"""
        op = site.op
        if op["kind"] != "sqrt":
            return None
        inside = site.add("mul", site.number(factor * factor), op["inputs"][0])
        return site.add("div", site.add("sqrt", inside), site.number(factor))

    form.__name__ = f"_root_times_{factor:g}"
    return form


def _shift_scaled(factor: float) -> object:
    def form(site: Site) -> str | None:
        """√(m + ε) = √(k²m + k²ε)/k, each constant a number of its own"""
        op = site.op
        inner = site.of(op["inputs"][0]) if op["kind"] == "sqrt" else None
        if inner is None or inner["kind"] != "add":
            return None
        for one, rest in (inner["inputs"], inner["inputs"][::-1]):
            if site.of(one)["kind"] == "const":
                shift = site.number(site.of(one)["value"] * factor * factor)
                scaled = site.add("add", site.add("mul", site.number(factor * factor), rest), shift)
                return site.add("mul", site.add("sqrt", scaled), site.number(1 / factor))
        return None

    form.__name__ = f"_shift_times_{factor:g}"
    return form


def _root_of_reciprocal(site: Site) -> str | None:
    """a/√s = a·√(1/s)"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][1])["kind"] == "sqrt":
        inside = site.of(op["inputs"][1])["inputs"][0]
        return site.add("mul", op["inputs"][0], site.add("sqrt", site.add("div", site.number(1.0), inside)))
    return None


def _reciprocal_of_root(site: Site) -> str | None:
    """a/√s = a·(1/√s)"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][1])["kind"] == "sqrt":
        return site.add("mul", op["inputs"][0], site.add("div", site.number(1.0), op["inputs"][1]))
    return None


def _root_over_itself(site: Site) -> str | None:
    """a/√s = a·√s/s"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][1])["kind"] == "sqrt":
        inside = site.of(op["inputs"][1])["inputs"][0]
        return site.add("div", site.add("mul", op["inputs"][0], op["inputs"][1]), inside)
    return None


def _root_of_product(site: Site) -> str | None:
    """√(c·s) = √c·√s for a number c"""
    op = site.op
    inner = site.of(op["inputs"][0]) if op["kind"] == "sqrt" else None
    if inner is not None and inner["kind"] == "mul":
        for one, rest in (inner["inputs"], inner["inputs"][::-1]):
            if site.of(one)["kind"] == "const" and site.of(one)["value"] > 0:
                return site.add("mul", site.number(math.sqrt(site.of(one)["value"])), site.add("sqrt", rest))
    return None


def _mean_inside(site: Site) -> str | None:
    """√(s/n + ε) = √(s + nε)/√n"""
    op = site.op
    inner = site.of(op["inputs"][0]) if op["kind"] == "sqrt" else None
    if inner is None or inner["kind"] != "add":
        return None
    for eps, mean in (inner["inputs"], inner["inputs"][::-1]):
        product = site.of(mean)
        if site.of(eps)["kind"] != "const" or product["kind"] != "mul":
            continue
        for c, total in (product["inputs"], product["inputs"][::-1]):
            if site.of(c)["kind"] == "const":
                count = 1 / site.of(c)["value"]
                moved = site.add("add", total, site.number(site.of(eps)["value"] * count))
                return site.add("mul", site.add("sqrt", moved), site.number(math.sqrt(site.of(c)["value"])))
    return None


FORMS = {
    "constant_by_products": (_twice_half, _thirds, _sum_of_parts),
    "constant_by_inverse": (_inverse,),
    "constant_by_roots": (_root, _square),
    "root_scaled": (_root_scaled(5.0), _root_scaled(2.0), _root_scaled(3.0), _root_scaled(0.1)),
    "shift_scaled": (_shift_scaled(2.0), _shift_scaled(5.0), _shift_scaled(8.0)),
    "reciprocal_roots": (_root_of_reciprocal, _reciprocal_of_root, _root_over_itself),
    "roots_of_products": (_root_of_product, _mean_inside),
}
for _name, _forms in FORMS.items():
    rewrite(_name, each(*_forms))
