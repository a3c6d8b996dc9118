"""Programs written operator by operator, for functions that are computed through exp."""

from __future__ import annotations

from mugraph.ir.ops import Kind

from tests.engine.verification.graphs import Builder, tensor

SIZES = {"row": 8, "column": 16}
X, Y, Z = (tensor(name, "row column", SIZES) for name in "xyz")


class Writer(Builder):
    """Expressions of x and y, operator by operator."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y = self.load("x", X), self.load("y", Y)

    def do(self, kind: Kind, *operands: str | float, fn: str = "") -> str:
        named = [o if isinstance(o, str) else self.const(f"c{len(self.ops)}_{i}", o) for i, o in enumerate(operands)]
        return self.ew(f"v{len(self.ops)}", kind, *named, fn=fn)

    def add(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.ADD, a, b)

    def mul(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.MUL, a, b)

    def div(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.DIV, a, b)

    def exp(self, a: str) -> str:
        return self.do(Kind.EXP, a)

    def fn(self, name: str, a: str) -> str:
        return self.do(Kind.UNARY, a, fn=name)

    def sigmoid(self, a: str) -> str:
        return self.fn("sigmoid", a)

    def softmax(self, a: str) -> str:
        power = self.exp(a)
        return self.div(power, self.reduce(f"s{len(self.ops)}", Kind.SUM, power, over="column"))


def logistic(w: Writer, a: str, sign: float = -1.0, one: float = 1.0) -> str:
    return w.div(1.0, w.add(one, w.exp(w.mul(sign, a))))
