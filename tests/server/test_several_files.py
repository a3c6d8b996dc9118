"""A file of layers shows answers for the shapes with which another file calls it, with the real engine."""

from __future__ import annotations

from pathlib import Path

from tests.server.support.editor import Editor

_SECONDS = 180
LAYERS = """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, h):
        return self.out(h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5) * self.gain)
"""
MODEL = """\
import torch
from layers import Scaled


{comment}
class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Scaled(64)

    def forward(self, h):
        print(h.shape)
        return self.inner(h)
"""


def test_layers_have_the_shapes_of_the_model(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    model, layers = root / "model.py", root / "layers.py"
    model.write_text(MODEL.format(comment=""))
    layers.write_text(LAYERS)
    settings = {"search": {"budget": 1}}
    one = Editor(root, settings=settings, env={"MUGRAPH_CACHE_DIR": str(tmp_path / "cache")})
    try:
        uri = one.open(layers, LAYERS)
        one.wait_codes(uri, "needs-shapes", timeout=_SECONDS)
        whole = one.open(model, model.read_text())
        said = MODEL.format(comment="# mugraph: h=f16[16, 64]")
        one.rewrite(whole, said)
        one.save(whole, model)
        (found,) = one.wait_codes(uri, "improved", timeout=_SECONDS)
        line = found["range"]["start"]["line"]
        assert "return self.out(h" in LAYERS.splitlines()[line]
        assert "16" in (one.hover(uri, line, 20) or "")
        one.choose(uri, line, "Replace")
        assert "layers_mugraph" in one.texts[uri]
        assert one.texts[whole] == said
    finally:
        one.kill()
