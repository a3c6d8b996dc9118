"""Which functions without shapes are said to need some, and of which arguments."""

from __future__ import annotations

import pytest
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.source import Source

HEAD = "import os\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom pathlib import Path\n\n"

OTHERS = {
    "makes a layer": "def norm(channels):\n    return torch.nn.GroupNorm(num_groups=8, num_channels=channels)",
    "makes another": "def wider(n, bias):\n    return torch.nn.Sequential(torch.nn.Linear(n, 4 * n, bias))",
    "writes a file": (
        "def export(model, path, kind):\n    assert kind in {'half', 'single'}\n    head = torch.zeros(256)\n"
        "    head[0] = model.config.depth\n    with open(path, 'wb') as f:\n        f.write(head.numpy().tobytes())"
    ),
    "reads one": "def load(place):\n    return torch.load(os.path.join(Path(place), 'weights.pt'))",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_what_takes_no_tensor_needs_no_shapes(text: str) -> None:
    assert find_definitions(Source("model.py", HEAD + text)).missing == ()


TENSORS = {
    "def f(x, path):\n    torch.save(torch.relu(x), open(path, 'wb'))": "x=f16[...]",
    "def f(x, width):\n    return torch.nn.Linear(width, width)(x.to(torch.half)) @ x": "x=f16[...]",
    "def f(x, kind):\n    assert kind in ('relu', 'gelu')\n    return getattr(F, kind)(torch.exp(x))": "x=f16[...]",
    "def f(a, b=None):\n    return torch.add(a, b)": "a=f16[...]",
    "def f(w):\n    return nn.Parameter(w), torch.exp(w)": "w=f16[...]",
}


@pytest.mark.parametrize(("text", "said"), TENSORS.items())
def test_what_takes_some_needs_theirs(text: str, said: str) -> None:
    (missing,) = find_definitions(Source("model.py", HEAD + text)).missing
    assert f"“# mugraph: {said}”" in missing.reason


def test_defaults_only() -> None:
    text = "def f(x=None, y=None):\n    return torch.add(x, y)"
    (missing,) = find_definitions(Source("model.py", HEAD + text)).missing
    assert missing.reason.startswith("no shapes are known; run")
