"""The user's modules, imported with hooks in their functions."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from mugraph.trace.pytorch.callables import HOOKS
from mugraph.trace.pytorch.kernel_modules import KernelModules, is_kernel_module
from mugraph.trace.run.instrument import rewrite_module
from mugraph.trace.run.recorder import Problem, Recorder
from mugraph.trace.run.tape import File
from mugraph.trace.syntax.nodes import number_nodes, number_of
from mugraph.trace.syntax.source import Source, read_source
from mugraph.trace.syntax.statements import TO_CALL, statement_problem

_INSTALLED = frozenset({"site-packages", "dist-packages"})


class Workspace:
    """Instruments every file of the user's that is imported.

    root:   of the user's code; libraries below it are not
    traced: the file that regions are looked for in. Its text may be newer than the file
    """

    def __init__(self, root: Path, recorder: Recorder, traced: Source) -> None:
        self.root = root
        self.traced = traced
        self.recorder = recorder
        self.files: list[File] = []
        self.codes: dict[str, CodeType] = {}  # of the files, by path

    def compile(self, source: Source, is_own: bool = True) -> CodeType:
        """is_own: whether it is the user's file. Raises SyntaxError or ValueError."""
        import ast

        if source is self.traced:  # inspect.getsource must see its text
            linecache.cache[source.path] = (len(source.text), None, list(source.lines), source.path)
        base = sum(len(file.numbering.nodes) for file in self.files)
        numbering = number_nodes(source.tree, base)
        for node in numbering.nodes:
            if isinstance(node, ast.stmt):
                problem = statement_problem(node)
                if problem is not None:
                    self.recorder.statements[number_of(node)] = Problem(problem, isinstance(node, TO_CALL))
            elif isinstance(node, ast.ExceptHandler):
                self.recorder.statements[number_of(node.body[0])] = Problem("catches an exception")
        copy = ast.parse(source.text, filename=source.path)
        number_nodes(copy, base)
        code = compile(rewrite_module(copy), source.path, "exec", dont_inherit=True)
        self.files.append(File(source, numbering, is_own))
        self.codes[source.path] = code
        judge = self.recorder.judge
        (judge.files if is_own else judge.libraries).add(source.path)
        return code

    def run(self, source: Source, name: str, package: str | None) -> dict[str, object]:
        """Runs a file as a module, if its package has not imported it: a second run would make other classes than those
        that the package's other modules have. Raises what it raises."""
        imported = sys.modules.get(name)
        if imported is not None and source.path in self.codes and imported.__file__ == source.path:
            return imported.__dict__
        module = ModuleType(name)
        module.__file__ = source.path
        module.__package__ = package or ""
        if Path(source.path).stem == "__init__":  # whose package's other modules it imports
            module.__path__ = [str(Path(source.path).parent)]
        module.__dict__[HOOKS] = self.recorder
        code = self.compile(source)
        sys.modules[name] = module
        exec(code, module.__dict__)
        return module.__dict__

    def owns(self, path: Path) -> bool:
        resolved = path.resolve()
        if _INSTALLED & set(self.root.parts):  # a library's own file is traced: its others are a library's still
            return str(path) == self.traced.path
        if not resolved.is_relative_to(self.root):
            return False
        relative = resolved.relative_to(self.root)
        return not {*_INSTALLED, "lib", "lib64"} & set(relative.parts[:-1])


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles with hooks, never from or to a bytecode cache."""

    def __init__(self, name: str, path: str, workspace: Workspace) -> None:
        super().__init__(name, path)
        self.workspace = workspace

    def get_code(self, fullname: str) -> CodeType | None:
        traced = self.workspace.traced
        is_traced = self.path == traced.path
        return self.workspace.compile(traced if is_traced else Source(self.path, read_source(Path(self.path))))

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[HOOKS] = self.workspace.recorder
        super().exec_module(module)


class WorkspaceFinder(importlib.abc.MetaPathFinder):
    """Finds what the ordinary finder finds; files of the workspace get the instrumenting loader."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if spec.origin is None or not self.workspace.owns(Path(spec.origin)):
            return None
        if is_kernel_module(Path(spec.origin)):
            spec.loader = KernelModules()
            return spec
        spec.loader = _Loader(fullname, spec.origin, self.workspace)
        spec.cached = None
        return spec
