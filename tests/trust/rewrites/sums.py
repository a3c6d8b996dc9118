"""Rewrites of sums, products of matrices, maxima and accumulators."""

from __future__ import annotations

from tests.trust.rewrites.sites import Site, each, rewrite


def _number_of(site: Site, op: dict[str, object]) -> tuple[str, str] | None:
    """Of a product with a constant: the constant and the rest."""
    if op["kind"] != "mul":
        return None
    for one, rest in (op["inputs"], op["inputs"][::-1]):  # type: ignore[index]
        if site.of(one)["kind"] == "const":
            return one, rest
    return None


def _all_have(site: Site, names: list[str], axes: list[str]) -> bool:
    return all({*axes} <= {*site.of(name)["axes"]} for name in names)


def _scale_into(site: Site) -> str | None:
    """c·Σx = Σ(cx), also of accumulators, and into a product's left operand"""
    found = _number_of(site, site.op)
    if found is None:
        return None
    c, rest = found
    inner = site.of(rest)
    if inner["kind"] == "sum" or (inner["kind"] == "accum" and inner["fn"] == ""):
        return site.copy(inner, site.add("mul", c, inner["inputs"][0]))
    if inner["kind"] == "dot":
        return site.copy(inner, site.add("mul", c, inner["inputs"][0]), inner["inputs"][1])
    return None


def _scale_into_right(site: Site) -> str | None:
    """c·(x w) = x (c w)"""
    found = _number_of(site, site.op)
    if found is not None and site.of(found[1])["kind"] == "dot":
        inner = site.of(found[1])
        return site.copy(inner, inner["inputs"][0], site.add("mul", found[0], inner["inputs"][1]))
    return None


def _scale_out(site: Site) -> str | None:
    """Σ(cx) = c·Σx"""
    op = site.op
    if op["kind"] == "sum" or (op["kind"] == "accum" and op["fn"] == ""):
        found = _number_of(site, site.of(op["inputs"][0]))
        if found is not None:
            return site.add("mul", found[0], site.copy(op, found[1]))
    if op["kind"] == "dot":
        for at, name in enumerate(op["inputs"]):
            found = _number_of(site, site.of(name))
            if found is not None:
                inputs = [found[1] if number == at else one for number, one in enumerate(op["inputs"])]
                return site.add("mul", found[0], site.copy(op, *inputs))
    return None


def _rows_scaled_after(site: Site) -> str | None:
    """(x/s) w = (x w)/s where s lacks the axes that are summed"""
    op = site.op
    if op["kind"] == "dot" and site.of(op["inputs"][0])["kind"] == "div":
        x, s = site.of(op["inputs"][0])["inputs"]
        if not {*site.of(s)["axes"]} & {*op["over"]} and {*op["over"]} <= {*site.of(x)["axes"]}:
            return site.add("div", site.copy(op, x, op["inputs"][1]), s)
    return None


def _rows_scaled_before(site: Site) -> str | None:
    """(x w)/s = (x/s) w"""
    op = site.op
    if op["kind"] == "div" and site.of(op["inputs"][0])["kind"] == "dot":
        inner = site.of(op["inputs"][0])
        if not {*site.of(op["inputs"][1])["axes"]} & {*inner["over"]}:
            return site.copy(inner, site.add("div", inner["inputs"][0], op["inputs"][1]), inner["inputs"][1])
    return None


def _dot_as_sum(site: Site) -> str | None:
    op = site.op
    if op["kind"] == "dot":
        return site.add("sum", site.add("mul", *op["inputs"]), over=list(op["over"]))
    return None


def _sum_as_dot(site: Site) -> str | None:
    op = site.op
    inner = site.of(op["inputs"][0]) if op["kind"] == "sum" else None
    if inner is None or inner["kind"] != "mul" or not _all_have(site, inner["inputs"], op["over"]):
        return None
    return site.add("dot", *inner["inputs"], over=list(op["over"]))


def _sums_in_turn(site: Site) -> str | None:
    """Over two axes at once = one after the other"""
    op = site.op
    if op["kind"] in ("sum", "amax") and len(op["over"]) > 1:
        last = op["inputs"][0]
        for axis in reversed(op["over"]):
            last = site.add(op["kind"], last, over=[axis])
        return last
    if op["kind"] == "dot" and len(op["over"]) > 1:
        first, *rest = op["over"]
        return site.add("sum", site.add("dot", *op["inputs"], over=[first]), over=rest)
    return None


def _sum_of_sum(site: Site) -> str | None:
    """Σ(a + b) = Σa + Σb, of accumulators too"""
    op = site.op
    inner = site.of(op["inputs"][0]) if op["kind"] == "sum" or (op["kind"] == "accum" and not op["fn"]) else None
    if inner is None or inner["kind"] != "add":
        return None
    if op["kind"] == "accum" or _all_have(site, inner["inputs"], op["over"]):
        return site.add("add", *(site.copy(op, name) for name in inner["inputs"]))
    return None


def _sum_after_loop(site: Site) -> str | None:
    """The iterations' tiles are added up, and their elements after the loop"""
    op = site.op
    inner = site.of(op["inputs"][0]) if op["kind"] == "accum" else None
    if inner is not None and inner["kind"] in ("sum", "amax"):
        return site.copy(inner, site.copy(op, inner["inputs"][0]))
    if inner is not None and inner["kind"] == "dot":
        return site.add("sum", site.copy(op, site.add("mul", *inner["inputs"])), over=list(inner["over"]))
    return None


def _largest_scaled(site: Site) -> str | None:
    """max(x)·2 = max(2x), put in as a detour"""
    op = site.op
    if op["kind"] == "amax":
        twice = site.add("amax", site.add("mul", site.number(2.0), op["inputs"][0]), over=list(op["over"]))
        return site.add("mul", site.number(0.5), twice)
    return None


def _largest_shifted(site: Site) -> str | None:
    """max(x + 1) − 1 = max(x)"""
    op = site.op
    if op["kind"] == "amax":
        more = site.add("amax", site.add("add", site.number(1.0), op["inputs"][0]), over=list(op["over"]))
        return site.add("add", site.number(-1.0), more)
    return None


def _halves(site: Site) -> str | None:
    """Σx = Σ(x/2) + Σ(x/2)"""
    op = site.op
    if op["kind"] in ("sum", "accum") and not op["fn"]:
        half = site.copy(op, site.add("mul", site.number(0.5), op["inputs"][0]))
        return site.add("add", half, half)
    return None


FORMS = {
    "scale_moved": (_scale_into, _scale_into_right, _scale_out),
    "rows_scaled": (_rows_scaled_after, _rows_scaled_before),
    "dot_and_sum": (_dot_as_sum, _sum_as_dot),
    "sums_in_turn": (_sums_in_turn,),
    "sum_of_sum": (_sum_of_sum,),
    "sum_after_loop": (_sum_after_loop,),
    "accumulator_halved": (_halves,),
    "largest": (_largest_scaled, _largest_shifted),
}
for _name, _forms in FORMS.items():
    rewrite(_name, each(*_forms))
