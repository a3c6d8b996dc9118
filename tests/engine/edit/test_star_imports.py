"""A file that imports all names of another one (`from parts import *`), where both have kernels: each asks its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.worker.kernel_checks import check_kernels

from tests.engine.edit.conftest import Maker
from tests.support.modules import imported

COMPUTED = "y = torch.nn.functional.silu(x @ w) * u"
PARTS = f"import torch\n\n\ndef part(x, w, u):\n    {COMPUTED}\n    return y\n"
WHOLE = f"""\
import torch

{{imported}}


def whole(x, w, u):
    {COMPUTED}
    return part(y, w.mT, u.new_ones(1))
"""
LIVE = ("x", "w", "u")


@pytest.mark.parametrize("first", ["parts", "whole"], ids=["the parts first", "the whole first"])
@pytest.mark.parametrize("star", [True, False], ids=["all names", "one"])
def test_each_file_asks_its_own_kernels(
    first: str, star: bool, tmp_path: Path, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {name: f"stars_{name}_{first}_{star}" for name in ("parts", "whole")}
    head = f"from {names['parts']} import {'*' if star else 'part'}"
    texts = {"parts": PARTS, "whole": WHOLE.format(imported=head)}
    files = {name: tmp_path / f"{names[name]}.py" for name in texts}
    for name, path in files.items():
        path.write_text(texts[name])
    for name in sorted(texts, key=lambda one: one != first):
        plan = maker.plan(texts[name], COMPUTED, name=f"{name}_gated", live_ins=LIVE)
        apply_files(files[name], [plan], maker.kernels)
        assert [one.state for one in check_kernels(files[name], files[name].read_text())] == ["fits"]
    monkeypatch.syspath_prepend(str(tmp_path))
    x, w, u = torch.randn(4, 8), torch.randn(8, 8), torch.randn(4, 8)
    with imported(files["whole"], names["whole"]) as module, torch.no_grad():
        inner = torch.nn.functional.silu(x @ w) * u
        assert torch.equal(module.whole(x, w, u), torch.nn.functional.silu(inner @ w.mT))
        asked = module.whole.__code__.co_names
        alias = "_mugraph_kernels" if star else "mugraph_kernels"
        assert alias in asked
        assert hasattr(vars(module)[alias], "whole_gated_fits")
    for name in ("parts", "whole"):
        sys.modules.pop(names[name], None)
        assert revert_file(files[name]).regions == 1
        assert files[name].read_text() == texts[name]
