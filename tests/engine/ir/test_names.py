"""Any text as an identifier."""

from __future__ import annotations

import pytest
from mugraph.ir.names import identifier


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("self.norm.weight", "self_norm_weight"),
        ("layers[0].w", "layers_0_w"),
        ("2x", "_2x"),
        ("größe", "gro_e"),
        ("wärme", "warme"),
        ("naïve.café", "naive_cafe"),
        ("漢", "value"),
        ("Δx", "x"),
        ("", "value"),
    ],
)
def test_an_identifier_is_of_ascii_letters(text: str, name: str) -> None:
    """PyTorch's schema of an operator takes no others."""
    assert identifier(text) == name
