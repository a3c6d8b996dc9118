"""Has torch.compile leave all as it is, so that functions are called and guards asked at each call.

Its environment variable does the same, but `fullgraph=True` raises then.
"""

from __future__ import annotations

import ast
import os
from importlib.machinery import SourceFileLoader
from types import CodeType

WANTED = "MUGRAPH_RUN_EAGER"
_AFTERWARDS = """\
if hasattr(torch.compiler, "set_stance"):
    torch.compiler.set_stance("force_eager")
else:
    config.disable = True
"""


def install() -> None:
    """Does nothing where it is not wanted, or where the program's environment says whether it is compiled."""
    if not os.environ.get(WANTED) or os.environ.get("TORCH_COMPILE_DISABLE") is not None:
        return
    ordinary = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if fullname == "torch._dynamo":
            try:
                return _eager(self.get_data(self.path), self.path)
            except (OSError, SyntaxError, ValueError, RecursionError):
                pass  # the ordinary way says what is wrong
        return ordinary(self, fullname)

    SourceFileLoader.get_code = get_code


def _eager(data: bytes, path: str) -> CodeType:
    tree = ast.parse(data, path)
    tree.body += ast.parse(_AFTERWARDS).body
    return compile(tree, path, "exec", dont_inherit=True)
