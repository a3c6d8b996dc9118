"""Unary functions that the algebra treats as opaque: equal arguments give equal results, and nothing more is known.

In the normal form each is an atom (function, argument); over finite fields it is a random oracle. Of some, by_erf.py,
by_sign.py and through_exp.py say more. Their numbers are in floats.py. silu is the only one inside the Lax fragment
(Mirage §5). A function that is known by its numbers alone is a kind (kinds/opaque.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnaryFunction:
    """name: `Op.fn`. torch: the calls it stands for (targets of ir.calls.Call). triton: expression over `{x}`, a
    float32 value. reference: the torch function for float semantics, as a dotted name plus keyword arguments."""

    name: str
    torch: tuple[str, ...]
    triton: str
    reference: str
    keywords: tuple[tuple[str, str], ...] = ()


UNARY: dict[str, UnaryFunction] = {
    u.name: u
    for u in (
        UnaryFunction(
            "silu",
            ("torch.nn.functional.silu",),
            "{x} * tl.sigmoid({x})",
            "torch.nn.functional.silu",
        ),
        UnaryFunction(
            "relu",
            ("torch.nn.functional.relu", "torch.relu_", "torch.relu", "Tensor.relu", "Tensor.relu_"),
            "tl.where({x} < 0.0, 0.0, {x})",
            "torch.relu",
        ),
        UnaryFunction(
            "sigmoid",
            (
                "torch.sigmoid",
                "torch.sigmoid_",
                "Tensor.sigmoid",
                "Tensor.sigmoid_",
                "torch.nn.functional.sigmoid",
                "torch.special.expit",
            ),
            "tl.sigmoid({x})",
            "torch.sigmoid",
        ),
        UnaryFunction(
            "tanh",
            ("torch.tanh", "torch.tanh_", "Tensor.tanh", "Tensor.tanh_", "torch.nn.functional.tanh"),
            # As tanhf of the Cephes library: a polynomial near zero, where a difference would leave few digits. Both
            # halves are within two units in the last place of a float32.
            "tl.where(tl.abs({x}) < 0.625, "
            "{x} * (1.0 + {x} * {x} * (-3.33332819422e-1 + {x} * {x} * (1.33314422036e-1 + {x} * {x} * "
            "(-5.37397155531e-2 + {x} * {x} * (2.06390887954e-2 - 5.70498872745e-3 * {x} * {x}))))), "
            "tl.where({x} < 0.0, -1.0, 1.0) * (1.0 - 2.0 * tl.sigmoid(-2.0 * tl.abs({x}))))",
            "torch.tanh",
        ),
        UnaryFunction(
            "abs",
            ("torch.abs", "torch.absolute", "Tensor.abs", "Tensor.abs_", "Tensor.absolute", "Tensor.__abs__"),
            "tl.abs({x})",
            "torch.abs",
        ),
        UnaryFunction(
            "erf",
            ("torch.erf", "Tensor.erf", "torch.special.erf"),
            "tl.erf({x})",
            "torch.erf",
        ),
        UnaryFunction(
            "gelu",
            ("torch.nn.functional.gelu",),
            "0.5 * {x} * (1.0 + tl.erf({x} * 0.7071067811865476))",
            "torch.nn.functional.gelu",
        ),
        UnaryFunction(
            "gelu_tanh",
            ("torch.nn.functional.gelu",),
            "{x} * tl.sigmoid(1.5957691216057308 * ({x} + 0.044715 * {x} * {x} * {x}))",
            "torch.nn.functional.gelu",
            (("approximate", "tanh"),),
        ),
    )
}
