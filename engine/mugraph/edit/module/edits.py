"""The part of the shared runtime that knows an edit of this package's own: kernels written into another of the user's
files do not make its functions other functions."""

from __future__ import annotations

EDITS = '''\
# Whether a function differs from what was analysed only by kernels that were written into its file since, or taken out
class _Unedited(ast.NodeTransformer):
    """Puts what runs where a kernel does not fit in place of the question. aliases: names of kernel modules; None: any
    name may be one"""

    def __init__(self, aliases: frozenset[str] | None) -> None:
        self.aliases = aliases

    def asks(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(ast.Attribute(ast.Name(alias), name)) if name.endswith("_fits"):
                return self.aliases is None or alias in self.aliases
        return False

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.orelse if node.orelse and self.asks(node.test) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return node.orelse if self.asks(node.test) else node


def _definition(text: str) -> ast.stmt:
    body = ast.parse(f"if True:\\n{text}" if text[:1] in (" ", "\\t") else text).body[0]
    return body.body[0] if isinstance(body, ast.If) else body


def _only_edited(function: FunctionType, code: _Code) -> bool:
    """Its file is read: a kernel module that it names says by its record that it was written by this package."""
    kernels = {
        name
        for name, value in function.__globals__.items()
        if isinstance(value, ModuleType) and "_REVERT" in vars(value) and "_same_code" in vars(value)
    }
    try:
        lines = inspect.getsourcelines(function.__code__)[0]
        node = _definition("".join(lines))
        first = node.lineno - (2 if lines[0][:1] in (" ", "\\t") else 1)  # behind its decorators
        text = "".join(lines[first:])
        as_it_runs = code._replace(imported=(*code.imported, *kernels))
        if not any(_alike(function.__code__, other) for other in _compiled(as_it_runs, text)):
            return False  # its file is another one now
        unedited = _Unedited(frozenset(kernels)).visit(_definition(text))
        analysed = _Unedited(None).visit(_definition(code.text))
        return ast.dump(unedited) == ast.dump(analysed)
    except (OSError, TypeError, SyntaxError, ValueError, AttributeError, IndexError, RecursionError):
        return False
'''
