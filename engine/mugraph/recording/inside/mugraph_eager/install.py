"""Has torch.compile leave all as it is, so that functions are called and guards asked at each call.

Its environment variable does the same, but `fullgraph=True` raises then.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType

WANTED = "MUGRAPH_RUN_EAGER"
Changed = Callable[[SourceFileLoader, str], CodeType | None]
"""As in mugraph_imports.py."""
_AFTERWARDS = """\
if hasattr(torch.compiler, "set_stance"):
    torch.compiler.set_stance("force_eager")
else:
    config.disable = True
"""


def install(change_imports: Callable[[Changed], None]) -> None:
    """Does nothing where it is not wanted, or where the program's environment says whether it is compiled."""
    if os.environ.get(WANTED) and os.environ.get("TORCH_COMPILE_DISABLE") is None:
        change_imports(_changed)


def _changed(loader: SourceFileLoader, name: str) -> CodeType | None:
    return _eager(loader.get_data(loader.path), loader.path) if name == "torch._dynamo" else None


def _eager(data: bytes, path: str) -> CodeType:
    tree = ast.parse(data, path)
    tree.body += ast.parse(_AFTERWARDS).body
    return compile(tree, path, "exec", dont_inherit=True)
