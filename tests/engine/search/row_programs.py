"""Programs whose rows are normed, with rows as long as is asked for."""

from __future__ import annotations

from mugraph.ir.program import TensorProgram

from tests.engine.search.workloads import Builder


def group_norm(channels: int, pixels: int, batch: int = 128, groups: int = 8) -> TensorProgram:
    """sigmoid(x * s) normed over channels and pixels, times a weight of each channel."""
    b = Builder("group_norm", b=batch, k=groups, c=channels, n=pixels)
    x, s, w = b.input("x", "b", "k", "c", "n"), b.input("s", "k", "c"), b.input("w", "k", "c")
    active = b.unary("sigmoid", "active", b.mul("scaled", x, s))
    count = b.const("share", 1 / (channels * pixels))
    mean = b.mul("mean", b.sum("total", active, "c", "n"), count)
    centred = b.add("centred", active, b.mul("negated", mean, b.const("minus_one", -1.0)))
    square = b.mul("mean_square", b.sum("squares", b.mul("square", centred, centred), "c", "n"), count)
    root = b.sqrt("root", b.add("shifted", square, b.const("eps", 1e-5)))
    return b.program(b.mul("y", b.div("normed", centred, root), w), "b", "k", "c", "n")


def deviation(pixels: int, rows: int = 256) -> TensorProgram:
    """The root of the mean square of what is centred: of a row that is read twice."""
    b = Builder("deviation", m=rows, n=pixels)
    x, count = b.input("x", "m", "n"), b.const("share", 1 / pixels)
    mean = b.mul("mean", b.sum("total", x, "n"), count)
    centred = b.add("centred", x, b.mul("negated", mean, b.const("minus_one", -1.0)))
    squares = b.sum("squares", b.mul("square", centred, centred), "n")
    return b.program(b.sqrt("root", b.mul("mean_square", squares, count)), "m")


def softmax_of_values(row: int) -> TensorProgram:
    """The sum of the exponentials is taken out of the product."""
    b = Builder("softmax_of_values", m=64, n=row, d=64)
    x, v = b.input("x", "m", "n"), b.input("v", "n", "d")
    e = b.exp("e", x)
    return b.program(b.dot("y", b.div("shares", e, b.sum("total", e, "n")), v, "n"), "m", "d")


def softmax(row: int) -> TensorProgram:
    b = Builder("softmax", m=64, n=row)
    x, gain, shift = b.input("x", "m", "n"), b.input("gain", "n"), b.input("shift", "n")
    e = b.exp("e", b.add("logits", b.mul("scaled", x, gain), shift))
    return b.program(b.div("y", e, b.sum("total", e, "n")), "m", "n")


def offset_norm(row: int, rows: int = 64) -> TensorProgram:
    """x less its mean, over its deviation with one degree of freedom less: a mean of n - 1."""
    b = Builder("offset_norm", m=rows, n=row)
    x = b.input("x", "m", "n")
    centred = b.add("centred", x, b.mul("negated", b.sum("total", x, "n"), b.const("share", -1 / row)))
    squares = b.sum("squares", b.mul("square", centred, centred), "n")
    root = b.sqrt("root", b.mul("variance", squares, b.const("degrees", 1 / (row - 1))))
    return b.program(b.div("y", centred, root), "m", "n")


def uncentred(pixels: int) -> TensorProgram:
    """The root of the mean square of the distance from twice the mean."""
    b = Builder("uncentred", m=256, n=pixels)
    x, share = b.input("x", "m", "n"), b.const("share", 2 / pixels)
    mean = b.mul("mean", b.sum("total", x, "n"), share)
    distance = b.add("distance", x, b.mul("negated", mean, b.const("minus_one", -1.0)))
    squares = b.sum("squares", b.mul("square", distance, distance), "n")
    return b.program(b.sqrt("root", squares), "m")


def naive_norm(row: int, rows: int) -> TensorProgram:
    """As offset_norm, with the square of the mean taken from the mean of the squares."""
    b = Builder("naive_norm", m=rows, n=row)
    x = b.input("x", "m", "n")
    total, squares = b.sum("total", x, "n"), b.sum("squares", b.mul("square", x, x), "n")
    centred = b.add("centred", x, b.mul("negated", total, b.const("share", -1 / row)))
    less = b.mul("less", b.mul("total_squared", total, total), b.const("of_all", -1 / row))
    spread = b.add("spread", squares, less)
    root = b.sqrt("root", b.mul("variance", spread, b.const("degrees", 1 / (row - 1))))
    return b.program(b.div("y", centred, root), "m", "n")
