"""`super().forward(x)`, and other methods of PyTorch's modules that are called by their names: what they do is a part
of the region, and what they read stays what it was."""

from __future__ import annotations

from tests.engine.trace.partition import Regions, ins, only, targets

HEAD = "# mugraph: x=f32[2, 8, 16]"
BLOCK = f"""
    class Norm(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.float()).type_as(x)


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = Norm(16)
            self.up = nn.Linear(16, 32)
            self.down = nn.Linear(32, 16)

        def forward(self, x):
            {HEAD}
            x = x + self.down(torch.tanh(self.up.forward(self.norm(x))))
            return x.softmax(-1)
    """
LAYER = f"""
    class Layer(nn.TransformerEncoderLayer):
        def __init__(self):
            super().__init__(16, 2, 32, dropout=0.0)

        def forward(self, x):
            {HEAD}
            x = self.norm1(x)
            return self.norm2(x + self._ff_block(x))
    """
TRAINED = f"""
    class Layer(nn.Linear):
        def __init__(self):
            super().__init__(16, 16)

        def forward(self, x):
            {HEAD}
            y = torch.relu(super().forward(x))
            self.requires_grad_(False)
            return y.softmax(-1)
    """


def test_a_norm_that_converts(regions: Regions) -> None:
    region = only(regions(BLOCK))
    assert {"x", "self.norm.weight", "self.up.weight", "self.down.weight"} <= set(ins(region))
    assert "torch.nn.functional.layer_norm" in targets(region)
    assert "self.norm.eps == 1e-05" in region.guards


def test_a_part_of_an_encoder_s_layer(regions: Regions) -> None:
    region = only(regions(LAYER))
    assert {"x", "self.linear1.weight", "self.norm2.weight"} <= set(ins(region))
    assert "_is_the(self.activation, 'torch.nn.functional.relu')" in region.guards
    ran = next(ran for name, ran in region.ran.items() if name.endswith("Layer"))
    assert "_ff_block" in ran.methods


def test_what_every_module_has_is_no_part(regions: Regions) -> None:
    found = regions(TRAINED)
    assert found
    assert not [region for region in found if "requires_grad_" in region.text]
