"""Changes modules as a Python imports them: what the parts of this folder have in common.

They are given it when they are installed, and import nothing of each other: in the user's program each is a package of
its own, here they are parts of this one.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType


def change_imports(changed: Callable[[SourceFileLoader, str], CodeType | None], traced: str | None = None) -> None:
    """Wraps the one method that all ways of importing a source file call. Its result is not kept on disk as bytecode.

    changed: the code of a module, given its loader and its name; None where it stays as it is
    traced:  name of a builtin function that changed code asks whether torch.compile is reading it
    """
    if traced is not None:
        setattr(builtins, traced, lambda: False)
    ordinary = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if fullname == "torch._dynamo" and traced is not None:
            _tell_dynamo(traced)
        try:
            code = changed(self, fullname)
        except (OSError, SyntaxError, ValueError, RecursionError):
            code = None  # the ordinary way says what is wrong
        return ordinary(self, fullname) if code is None else code

    SourceFileLoader.get_code = get_code


def _tell_dynamo(traced: str) -> None:
    """Once torch is there, the name stands for torch's own function, which returns False, and which dynamo takes for
    True: what is compiled is the code as it stands in the file."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    compiling = getattr(compiler, "is_dynamo_compiling", None)
    if callable(compiling):
        setattr(builtins, traced, compiling)
