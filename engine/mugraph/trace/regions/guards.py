"""Guards: what must hold at run time for a region to be the same function.

A run depends on the tensors that it consumes (generated code checks their shapes, types and layouts), on the code that
ran (inlined.py), and on the other objects that it reads. Each of these objects gets a guard: a number or flag on its
value, a sequence on its length, and tensors and objects that were reached in two ways on being the same. Branches need
no guards of their own: what decides them has been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import cast

import torch

from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.regions.conditions import Conditions, about, constant, without_literal
from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.user_code import is_own_of_torch
from mugraph.trace.regions.written_out import WrittenOut
from mugraph.trace.run.tape import Event, Loaded, ModuleCalled

_USES_TRAINING = (
    torch.nn.modules.dropout._DropoutNd,  # pyright: ignore[reportPrivateUsage]
    torch.nn.modules.batchnorm._NormBase,  # pyright: ignore[reportPrivateUsage]
    torch.nn.MultiheadAttention,
    torch.nn.RNNBase,
    torch.nn.RReLU,
)
# Said by the parameters' shapes already, or by `_USES_TRAINING`
_IMPLIED = frozenset({"training", "in_features", "out_features", "in_channels", "out_channels", "num_features"})
_ROOT = re.compile(r"[.\[]")
_OF_EVERY_MODULE = frozenset(torch.nn.Module().__dict__)


_COUNTING = torch.nn.BatchNorm1d | torch.nn.BatchNorm2d | torch.nn.BatchNorm3d
_COUNTS = "num_batches_tracked"
"""Of batch norms: read in training alone. Whether a module trains is a condition of its own."""


def conditions_of(
    events: Sequence[Event], names: Mapping[str, object], paths: Paths, consumed: Mapping[int, str], here: str
) -> Conditions:
    """Of the events of a region.

    names:    the region's own names that it reads, as they were before it
    paths:    expressions for objects that were there before it
    consumed: ids of the live-in tensors -> the expressions by which the region reads them
    here:     an expression for the device they are on
    """
    conditions: Conditions = {}
    written = WrittenOut(names)
    for name, value in names.items():
        if not (isinstance(value, FunctionType | type | ModuleType) and paths.get(value) is not None):
            _same(name, value, conditions, paths, consumed, written)
            about(name, value, conditions, here, id(value) in consumed)
    kinds = {type(value): f"type({paths.expressions[id(value)]})" for value in reversed(paths.kept)}
    compared = {type(event.module) for event in events if isinstance(event, ModuleCalled)}
    for event in events:
        if isinstance(event, ModuleCalled):
            expression = paths.get(event.module)
            if expression is not None and (event.method is not None or is_own_of_torch(type(event.module))):
                _about_module(expression, event.module, conditions, paths, consumed, here, written)
        elif isinstance(event, Loaded) and event.name != "[]" and not _is_class_of(event, compared):
            base = None if _has_their_device(event.base, consumed) else paths.get(event.base)
            if base is None and isinstance(event.base, type):
                base = kinds.get(event.base)
            if base is None or _is_property(event):
                continue
            expression = f"{base}{event.name if event.name.startswith('[') else f'.{event.name}'}"
            if not _is_code(event.value, paths):
                _read(expression, event.value, conditions, paths, consumed, here, written)
            elif event.name.startswith("[") and isinstance(event.value, FunctionType):
                _entry(expression, event.value, conditions, paths, here)
    return conditions


def _has_their_device(value: object, consumed: Mapping[int, str]) -> bool:
    """Live-ins are on one device, but for tensors without dimensions."""
    return id(value) in consumed and not (isinstance(value, torch.Tensor) and value.dim() == 0)


def _is_code(value: object, paths: Paths) -> bool:
    """Whether the object is code: methods, the user's functions, classes and modules. inlined.py checks these."""
    if isinstance(value, FunctionType | type | ModuleType) and paths.get(value) is not None:
        return True
    bound = attribute_of(value, "__self__") is not None and callable(value)
    return bound and not isinstance(value, torch.nn.Module) and not _is_library_function(value)


def _entry(expression: str, function: FunctionType, conditions: Conditions, paths: Paths, here: str) -> None:
    """A table's entry: the code is compared of what the function's name leads to, which may be another name."""
    known = paths.get(function)
    if known is not None and "__closure__" not in known + expression:
        if known != expression:
            conditions.setdefault(f"{expression} is {known}", [])
    else:
        about(expression, function, conditions, here)


def _is_class_of(event: Loaded, compared: Set[type]) -> bool:
    """Whether it asks a module that was called, or its class, what class that is. compared: these classes, whose code
    inlined.py checks"""
    if event.name == "__class__":
        return isinstance(event.base, torch.nn.Module) and type(event.base) in compared
    return event.name in ("__name__", "__qualname__", "__module__") and event.base in compared


def _is_property(event: Loaded) -> bool:
    """A property of a class of the user's: what it computes is code that ran (a lambda leaves no trace of that)."""
    if isinstance(event.base, torch.Tensor):  # traced, a tensor's device is a property in Python
        return False
    raw = getattr(type(event.base), event.name, None)
    function = raw.fget if isinstance(raw, property) else None
    return isinstance(function, FunctionType) and function.__name__ != "<lambda>"


def _is_library_function(value: object) -> bool:
    return isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | type)


def _same(
    expression: str,
    value: object,
    conditions: Conditions,
    paths: Paths,
    consumed: Mapping[int, str],
    written: WrittenOut,
) -> None:
    """What two expressions led to is read by one of them: the other must still lead to it. Items are another matter:
    `layers[1]` is the loop's `layer` in one iteration. Of them the tensors are compared."""
    known = consumed.get(id(value)) or (None if constant(value) is not None else paths.get(value))
    if known is None or known == expression:
        return
    if isinstance(value, torch.Tensor) or "[" not in expression or _alike(expression, known):
        _must_be(expression, known, conditions, written)


def _must_be(expression: str, known: str, conditions: Conditions, written: WrittenOut) -> None:
    """Two ways to an object. That `layers[0]` is `layers[i]` says nothing where `i` is 0, and is wrong in a loop's next
    iteration. That `self.last` is `self.layers[i]` is written out: it is so in every iteration. A local may
    be another object in each (`layer.weight is self.layers[i].weight`), which stays as it is."""
    one, other = written.of(expression), written.of(known)
    if one == other:
        return
    moves = (one != expression) != (other != known)
    said = f"{one} is {other}" if moves and _alike(expression, known) else f"{expression} is {known}"
    conditions.setdefault(said, [])


def _read(
    expression: str,
    value: object,
    conditions: Conditions,
    paths: Paths,
    consumed: Mapping[int, str],
    here: str,
    written: WrittenOut,
) -> None:
    """What was read by an expression. It must equal what another expression reads, or is compared by itself."""
    _same(expression, value, conditions, paths, consumed, written)
    about(expression, value, conditions, here, id(value) in consumed)
    if not isinstance(value, torch.nn.Module) or isinstance(value, torch.nn.ModuleList | torch.nn.ModuleDict):
        _tied(expression, value, conditions, paths, written)


def _tied(expression: str, value: object, conditions: Conditions, paths: Paths, written: WrittenOut) -> None:
    """Parts of objects that are also reached in another way: both ways must still lead to the same."""
    for names, child in _parts(expression, value):
        known = paths.get(child)
        if known is None or isinstance(child, FunctionType | type):
            continue  # code: inlined.py checks what ran of it
        if written.of(known) not in map(written.of, names) and constant(child) is None and _alike(expression, known):
            _must_be(names[0], known, conditions, written)


def _alike(one: str, other: str) -> bool:
    """Whether two expressions begin with the same name. A local that is one of an object's parts is another one in the
    loop's next iteration."""
    return _ROOT.split(one, maxsplit=1)[0] == _ROOT.split(other, maxsplit=1)[0]


def _parts(expression: str, value: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """What is reached without being read by a name: the items of a sequence, the modules of a container. With the
    expressions that say so."""
    if isinstance(value, torch.nn.Module):
        for name, child in cast("Mapping[str, object]", value.__dict__["_modules"]).items():
            plain = (f"{expression}.{name}", f"{expression}[{name}]", f"{expression}[{name!r}]")
            yield (f"{expression}._modules[{name!r}]", *plain), child
    elif isinstance(value, list | tuple):
        yield from (((f"{expression}[{n}]",), item) for n, item in enumerate(cast("Sequence[object]", value)))
    elif isinstance(value, dict):
        pairs = cast("Mapping[object, object]", value).items()
        yield from (((f"{expression}[{key!r}]",), item) for key, item in pairs if isinstance(key, str | int))


def _about_module(
    expression: str,
    module: torch.nn.Module,
    conditions: Conditions,
    paths: Paths,
    consumed: Mapping[int, str],
    here: str,
    written: WrittenOut,
) -> None:
    """The state of one of PyTorch's own modules: its code is not watched, so all that it may have read counts."""
    if isinstance(module, torch.nn.ModuleList | torch.nn.Sequential | torch.nn.ModuleDict):
        conditions.setdefault(f"len({expression})", [str(len(module))])
    _tied(expression, module, conditions, paths, written)
    for name, value in module.__dict__.items():
        text = constant(value)
        if text is not None and name not in _IMPLIED and name not in _OF_EVERY_MODULE:
            conditions.setdefault(f"{expression}.{name}", [text])
        elif isinstance(value, FunctionType | BuiltinFunctionType | partial) or (
            text is None and name not in _OF_EVERY_MODULE and without_literal(value) is not None
        ):  # as a layer's activation, or an infinite limit
            about(f"{expression}.{name}", cast("object", value), conditions, here)
    if isinstance(module, _USES_TRAINING):
        conditions.setdefault(f"{expression}.training", [repr(module.training)])
    for kind in ("_parameters", "_buffers"):
        for name, tensor in cast("Mapping[str, torch.Tensor | None]", module.__dict__[kind]).items():
            if name == _COUNTS and isinstance(module, _COUNTING) and not module.training:
                continue
            if tensor is None:
                conditions.setdefault(f"{expression}.{name}", ["None"])
            else:
                _read(f"{expression}.{name}", tensor, conditions, paths, consumed, "", written)
