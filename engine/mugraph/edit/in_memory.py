"""A function of the running program with its regions replaced, without touching its file: for `mugraph.optimize`."""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from mugraph.edit.apply import Prepared, prepare
from mugraph.edit.cells.cell import EDITED, folder_of_cells, is_typed
from mugraph.edit.cells.file import imports_of
from mugraph.edit.cells.session import file_of_session, in_file
from mugraph.edit.source.files import write_whole
from mugraph.ir.content import digest
from mugraph.ir.dtypes import ELEMENTS, READ
from mugraph.ir.kernel import KernelSource
from mugraph.plans.plan import RegionPlan
from mugraph.recording.inside.mugraph_recorder.pictures import picture
from mugraph.store.place import cache_folder
from mugraph.targets import Target
from mugraph.trace.picture import Picture, picture_from

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Origin:
    """Where a callable's code stands. function: the code itself (a module's `forward`). qualname: as tracing names
    it. module: the nn.Module instance, if that was given."""

    path: Path
    text: str
    qualname: str
    function: Any
    module: object | None

    @staticmethod
    def of(fn: Callable[..., object], *inputs: object) -> Origin:
        """inputs: that it is called with, where its code may be that of a session. Raises TypeError, one sentence."""
        module = None
        code: object = inspect.unwrap(fn)
        if not isinstance(code, types.FunctionType):
            module = fn
            code = inspect.unwrap(getattr(type(fn), "forward", fn))
        if not isinstance(code, types.FunctionType):
            raise TypeError("mugraph.optimize takes a Python function or an nn.Module")
        if "<locals>" not in code.__qualname__ and is_typed(code):
            path = file_of_session(code, module, inputs)
        else:
            path = Path((inspect.getsourcefile(code) or "").removesuffix(EDITED))
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, TypeError):
            raise TypeError(f"{code.__qualname__} has no source file to read") from None
        if "<locals>" in code.__qualname__:
            raise TypeError(f"{code.__qualname__} is defined inside a function; move it to the module's level")
        if code.__closure__ and module is None:
            raise TypeError(f"{code.__qualname__} uses super() or variables of an enclosing function")
        return Origin(path, text, code.__qualname__, code, module)

    @property
    def is_of_session(self) -> bool:
        """Whether it was defined in a notebook or an interactive session; the file holds what it consists of."""
        return self.path.parent == folder_of_cells()

    @property
    def is_decorated(self) -> bool:
        """By its own text."""
        try:
            return bool(_definition(ast.parse(self.text), self.qualname).decorator_list)
        except TypeError:
            return False

    @property
    def is_plain(self) -> bool:
        """Whether a copy of the function can take its place."""
        return not self.is_decorated and not self.function.__closure__

    def traceable(self) -> str:
        """The text to trace. A function's own shape comments are left out: the shapes of the inputs at hand count
        instead."""
        if self.module is not None:
            return self.text  # the comment may say how to build the module
        return re.sub(r"(?m)^([ \t]*)#[ \t]*mugraph:.*$", r"\1#", self.text)


def is_plain_data(value: object) -> bool:
    """Whether text says what it is: tensors, numbers, strings and None, in tuples."""
    import torch

    if type(value) is tuple:
        return all(map(is_plain_data, cast("tuple[object, ...]", value)))
    return value is None or isinstance(value, torch.Tensor | bool | int | float | str)


def described(
    origin: Origin, inputs: Sequence[object], keywords: Mapping[str, object] | None = None
) -> Mapping[str, Mapping[str, str]]:
    """The example inputs as recorded shapes: qualified name -> argument -> text ("f16[16, 4096]"; other values as they
    print). Raises TypeError where they do not fit the signature."""
    import torch

    traced = (*READ, "f64")
    names: dict[torch.dtype, str] = {getattr(torch, ELEMENTS[name].torch): name for name in traced}
    owner = [origin.module] if origin.module else []
    arguments = inspect.signature(origin.function).bind(*owner, *inputs, **(keywords or {})).arguments
    seen: dict[str, str] = {}
    for name, value in arguments.items():
        if value is origin.module and origin.module is not None:
            continue
        if isinstance(value, torch.Tensor):
            if value.dtype not in names:
                raise TypeError(f"{name} has the type {value.dtype}, which cannot be traced")
            seen[name] = f"{names[value.dtype]}{list(value.shape)}"
        else:
            seen[name] = repr(value)
    return {origin.qualname: seen}


def pictured(origin: Origin, inputs: Sequence[object], keywords: Mapping[str, object]) -> Mapping[str, Picture]:
    """A call with these inputs, its objects as they are now. Raises TypeError where they do not fit the signature."""
    signature = inspect.signature(origin.function)
    owner = [] if origin.module is None else [origin.module]
    call = signature.bind(*owner, *inputs, **keywords)
    call.apply_defaults()  # as a recorded call has them: an argument is found by its place
    bound = call.arguments
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = {stars.get(signature.parameters[name].kind, "") + name: value for name, value in bound.items()}
    if origin.module is not None:
        del given[next(iter(signature.parameters))]
    made = picture(origin.module, given, origin.function.__code__, origin.function.__globals__)
    if origin.is_of_session:
        made = in_file(made, origin.path)
    return {origin.qualname: picture_from(made)}


def replacement(
    fn: Callable[P, R],
    origin: Origin,
    plans: Sequence[RegionPlan],
    sources: Mapping[str, KernelSource],
    target: Target,
) -> Callable[P, R]:
    """`fn` with the plans' regions replaced; a module comes back as a copy that shares all parameters."""
    ready = prepare(origin.traceable().encode(), origin.path, plans, sources, target=target)
    kernels = kernel_module(ready, origin.function.__globals__ if origin.is_of_session else None)
    tree = ast.parse(ready.source.decode())
    alias = alias_in(tree, ready.module.stem)
    node = _definition(tree, origin.qualname)
    future = ast.parse("from __future__ import annotations").body
    unique = f"_{alias}_{digest(ready.module_text, length=10)}"
    node = _Renamed(alias, unique).visit(node)
    code = compile(ast.Module([*future, node], []), f"{origin.path}{EDITED}", "exec")
    space: dict[str, object] = dict(origin.function.__globals__)
    exec(code, space)
    made: Any = inspect.unwrap(cast("Callable[..., object]", space[node.name]))
    # The function's own globals, live: a copy would not see what the program sets later.
    origin.function.__globals__[unique] = kernels
    linked: Any = types.FunctionType(
        made.__code__, origin.function.__globals__, made.__name__, origin.function.__defaults__
    )
    linked.__kwdefaults__ = origin.function.__kwdefaults__
    if origin.module is None:
        return cast("Callable[P, R]", linked)
    clone: Any = copy.copy(cast(Any, origin.module))
    clone.forward = types.MethodType(linked, clone)
    return cast("Callable[P, R]", clone)


class _Renamed(ast.NodeTransformer):
    """Replaces a global name: each kernel module needs its own name among the user's globals."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._new, node.ctx), node) if node.id == self._old else node


def alias_in(tree: ast.Module, module: str) -> str:
    """The name the edited text imports the kernel module by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                if name.name.rpartition(".")[2] == module:
                    return name.asname or name.name
    raise AssertionError("the edited text does not import its kernels")


def _definition(tree: ast.Module, qualname: str) -> ast.FunctionDef:
    """The function's own node. Raises TypeError where it is no plain `def`."""
    body = tree.body
    *owners, last = qualname.split(".")
    for owner in owners:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
        body = found[-1].body if found else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == last]
    if not functions:
        raise TypeError(f"{qualname} is not defined at the level of its module or class")
    return functions[-1]


def kernel_module(ready: Prepared, session: dict[str, object] | None = None) -> types.ModuleType:
    """The kernel module, imported from a file in the cache: Triton reads kernels back from their file. session: the
    names of the code that it is for, where that is of no file"""
    folder = cache_folder() / "modules"
    folder.mkdir(parents=True, exist_ok=True)
    name, text = ready.module.stem, ready.module_text
    unique = f"{name}_{digest(text, length=16)}"
    if unique in sys.modules:
        return sys.modules[unique]
    path = folder / f"{unique}.py"
    for place, content in ((folder / ready.runtime.name, ready.runtime_text), (path, text)):
        write_whole(place, content.encode())
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["_FOR_FILE"] = os.path.realpath(ready.path)  # the file is not beside it
    if session is not None:
        module.__dict__.update(_FOR_NAMES=session, _FOR_IMPORTS=imports_of(ready.path))
    spec.loader.exec_module(module)
    sys.modules[unique] = module
    return module
