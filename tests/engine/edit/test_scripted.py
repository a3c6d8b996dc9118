"""`torch.jit.script` of a file keeps working after --apply, whatever its conditions read."""

from __future__ import annotations

import ast

import pytest
import torch
from mugraph.edit.apply import apply_files

GLOBALS = "LIMIT = 3\n\n\ndef helper(x):\n    return x\n\n\nclass Gated"
GUARDS = (
    "LIMIT == 3",
    "helper.__name__ == 'helper'",
    "functional.__name__ == 'torch.nn.functional'",
    "len(self.w) == 8",
)


@pytest.mark.parametrize("unit", ["statements", "expression"])
def test_a_scripted_module_is_the_original(unit, gated_file, maker, source, part, load, on_this_machine) -> None:
    text = source.replace("class Gated", GLOBALS)
    gated_file.write_text(text)
    if unit == "expression":
        part, outs = part.removeprefix("y = "), ("",)
    else:
        outs = ("y",)
    plan = maker.plan(text, part, unit=unit, live_outs=outs, guards=GUARDS)
    apply_files(gated_file, [plan], maker.kernels)
    assert "gated_fits(self, x)" in gated_file.read_text()
    loaded = load(gated_file)
    log = on_this_machine(loaded.kernels)
    model, x = loaded.model.Gated().eval(), torch.randn(4, 8)
    with torch.no_grad():
        expected = model(x)
        assert log == ["gate"]
        scripted = torch.jit.script(model)
        torch.testing.assert_close(scripted(x), expected)
        torch.testing.assert_close(torch.jit.freeze(scripted)(x), expected)
        assert log == ["gate"]
        loaded.model.LIMIT = 4
        model(x)
    assert log == ["gate"]


def test_what_a_function_binds_itself_is_passed_on(gated_file, maker, source, part) -> None:
    """A global name that the function hides is its own variable."""
    text = source.replace("class Gated", GLOBALS).replace(
        "        # what the gate", "        LIMIT = 3\n        # what the gate"
    )
    gated_file.write_text(text)
    done = apply_files(gated_file, [maker.plan(text, part, guards=("LIMIT == 3",))], maker.kernels)
    assert "gated_fits(self, x, LIMIT)" in gated_file.read_text()
    assert "_here[" not in done.module_text
    ast.parse(done.module_text)
