"""A call as it was: the object, its arguments and what was set around it, as plain data for JSON.

Objects that are met again, or refer to each other, are nodes of one list; a value is a number, a text, or says in `is`
what it is. `mugraph/trace/picture.py` describes the form. Tensors are kept by shape, strides, type, device and whose
storage they share, never by content. The one exception is said in `mugraph record --help`: of a mask that a module
keeps, that it is a triangle of zeros, ones or minus infinity, which is structure: without it no causal attention would
be known as one. Nothing of the program's is called: no property, no `__getattr__`, no `__reduce__`.
"""

from __future__ import annotations

import enum
import functools
import math
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

from .around import around, global_data
from .masks import triangle
from .places import NoPlace, file_of, place
from .plain import HEAP_TYPE, held_by, numbers_of, plain

Node = dict[str, Any]

MOST_NODES = 60_000
MOST_ITEMS = 4_096
MOST_TEXT = 4_096
MOST_DEPTH = 120
"""Deeper, longer and larger than this is not kept."""
MOST_NAMED = 12
"""Things not kept that are named."""
_OF_TORCH = frozenset(
    {"_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks",
     "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
     "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
     "_is_full_backward_hook", "_buffers", "_modules", "_parameters"}
)  # fmt: skip
"""Of a module: what torch.nn.Module itself sets, and need not be kept where it is empty."""
_SEQUENCES: Mapping[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", deque: "deque"}


def picture(
    owner: object, arguments: Mapping[str, object], code: CodeType | None, namespace: Mapping[str, object]
) -> Node:
    """Of one call. owner: None for a function of no class. The nodes up to `own` are the owner's."""
    keeper = _Keeper()
    root = keeper.value(owner, "self") if owner is not None else None
    own = len(keeper.nodes)
    given = {name: keeper.value(value, name) for name, value in arguments.items()}
    named = {name: keeper.value(value, name) for name, value in global_data(owner, code, namespace).items()}
    return {
        "owner": root,
        "arguments": given,
        "globals": named,
        "own": own,
        "nodes": keeper.nodes,
        "module": str(namespace.get("__name__", "")),
        "around": around(),
        "unkept": keeper.unkept,
    }


class _Keeper:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.unkept: list[str] = []
        self._places: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._alive: list[object] = []
        self._depth = 0
        torch = sys.modules.get("torch")
        self._tensor = cast("type[Any]", getattr(torch, "Tensor", _Never))
        self._parameter = cast("type[Any]", getattr(getattr(torch, "nn", None), "Parameter", _Never))
        self._module = cast("type[Any]", getattr(getattr(torch, "nn", None), "Module", _Never))
        self._torch = torch

    def value(self, value: Any, where: str) -> Any:
        kind = cast("type[Any]", type(value))
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -(2**53) <= value <= 2**53 else {"is": "int", "text": str(value)}
        if kind is float:
            return value if math.isfinite(value) else {"is": "float", "text": str(value)}
        if kind is str:
            return value if len(value) <= MOST_TEXT else self._lost(where, "a long text")
        if kind is complex:
            return {"is": "complex", "parts": [self.value(value.real, where), self.value(value.imag, where)]}
        if value is Ellipsis:
            return {"is": "named", "what": "ellipsis", "text": "..."}
        if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format", "device"):
            return {"is": "named", "what": kind.__name__, "text": str(value).removeprefix("torch.")}
        if isinstance(value, enum.Enum):
            return self._member(kind, value.name, where)
        if isinstance(value, type | ModuleType | BuiltinFunctionType):
            return self._placed(value, where)
        if kind is FunctionType:
            try:
                return place(value)
            except NoPlace:
                pass
        if kind.__flags__ & HEAP_TYPE and not plain(kind):
            for name, one in kind.__dict__.items():
                if one is value:  # of an enumeration that is written in C
                    return self._member(kind, name, where)
        return self._node(value, where)

    def _node(self, value: Any, where: str) -> Node:
        known = self._places.get(id(value))
        if known is not None:
            return {"is": "ref", "at": known}
        if len(self.nodes) >= MOST_NODES or self._depth >= MOST_DEPTH:
            return self._lost(where, "nested too deeply" if self._depth >= MOST_DEPTH else "too much")
        at = len(self.nodes)
        self._places[id(value)] = at
        self._alive.append(value)
        self.nodes.append({})
        self._depth += 1
        try:
            self.nodes[at] = self._content(value, where)
        finally:
            self._depth -= 1
        return {"is": "ref", "at": at}

    def _content(self, value: Any, where: str) -> Node:
        kind = cast("type[Any]", type(value))
        if isinstance(value, self._tensor):
            return self._of_tensor(value, where)
        if kind.__name__ == "Size" and kind.__module__ == "torch":
            return {"is": "items", "kind": "size", "items": [int(size) for size in value]}
        if isinstance(value, dict):
            return self._pairs(cast("dict[object, object]", value), where)
        for base, name in _SEQUENCES.items():
            if isinstance(value, base):
                return self._items(value, base, name, where)
        if kind is slice or kind is range:
            parts = [self.value(part, where) for part in (value.start, value.stop, value.step)]
            return {"is": kind.__name__, "parts": parts}
        if kind is functools.partial:
            called = self.value(value.func, f"{where}.func")
            kwargs = {name: self.value(one, f"{where}.{name}") for name, one in value.keywords.items()}
            return {"is": "partial", "function": called, "args": self._all(value.args, where), "kwargs": kwargs}
        if kind is MethodType:
            function = self.value(value.__func__, where)
            return {"is": "method", "function": function, "owner": self.value(value.__self__, where)}
        if kind is weakref.ref:  # those of other classes hold more
            return {"is": "weak", "to": self.value(value(), where)}
        if kind is FunctionType:
            return self._function(value, where)
        if kind is SimpleNamespace:  # written in C, but nothing beside its attributes
            state = {name: self.value(one, f"{where}.{name}") for name, one in held_by(value).items()}
            return {"is": "object", "of": place(kind), "state": state}
        if isinstance(value, PurePath):
            return {"is": "path", "text": str(value)}
        if kind.__module__ == "numpy":
            return self._of_numpy(value, where)
        if isinstance(value, int | float | str | bytes) or kind.__flags__ & HEAP_TYPE == 0:
            return self._lost(where, a(kind))
        return self._object(value, kind, where)

    def _of_numpy(self, value: Any, where: str) -> Node:
        """An array of few numbers that an object keeps, as the steps of a schedule, or one number."""
        kind, numbers = cast("type[Any]", type(value)), numbers_of(value, MOST_ITEMS)
        alone = not hasattr(value, "__array_finalize__")
        if numbers is None or not (alone or where.startswith("self")):
            return self._lost(where, a(kind) if alone else f"an array of {value.size:,}")
        items = [self.value(one, where) for one in numbers]
        return {"is": "array", "dtype": value.dtype.str, "shape": list(value.shape), "items": items, "alone": alone}

    def _object(self, value: Any, kind: type[Any], where: str) -> Node:
        of = self._class(kind, where)
        if of["is"] == "unkept":
            return of
        if not plain(kind):
            return self._lost(where, a(kind))
        return {"is": "object", "of": of, **self._state(value, kind, where)}

    def _state(self, value: Any, kind: type[Any], where: str) -> Node:
        """The attributes that it has of its own, in its `__dict__` and its slots."""
        held = held_by(value)
        names = list(held)[:MOST_ITEMS]
        if issubclass(kind, self._module):
            names = [name for name in names if name not in _OF_TORCH or held[name]]
        state = {name: self.value(held[name], f"{where}.{name}") for name in names if type(name) is str}
        slots: Node = {}
        for one in kind.__mro__:
            for name, descriptor in one.__dict__.items():
                if type(descriptor).__name__ == "member_descriptor" and one.__module__ != "builtins":
                    try:
                        slots[name] = self.value(descriptor.__get__(value, kind), f"{where}.{name}")
                    except AttributeError:
                        continue
        return {"state": state, "slots": slots} if slots else {"state": state}

    def _of_tensor(self, value: Any, where: str) -> Node:
        kind = cast("type[Any]", type(value))
        if kind is not self._tensor and kind is not self._parameter and kind.__name__ != "Buffer":
            return self._lost(where, f"a tensor of the class {kind.__name__}")
        if str(value.layout) != "torch.strided" or value.is_quantized or value.is_nested:
            return self._lost(where, f"a tensor of the layout {value.layout}")
        storage = value.untyped_storage()
        number = self._storages.setdefault(storage._cdata, len(self._storages))
        is_parameter = isinstance(value, self._parameter)
        node: Node = {
            "is": "tensor",
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": [int(size) for size in value.shape],
            "strides": [int(stride) for stride in value.stride()],
            "offset": int(value.storage_offset()),
            "device": str(value.device),
            "storage": number,
            "bytes": int(storage.nbytes()),
            "needs_grad": bool(value.requires_grad),
            "parameter": is_parameter,
        }
        held = held_by(value)
        if held:
            node["state"] = {name: self.value(one, f"{where}.{name}") for name, one in held.items()}
        if not is_parameter and where.startswith("self"):
            found = triangle(value, self._torch)
            if found is not None:
                node["triangle"] = found
        return node

    def _pairs(self, value: dict[object, object], where: str) -> Node:
        if len(value) > MOST_ITEMS:
            return self._lost(where, f"a dictionary of {len(value):,}")
        kind = type(value)
        items: list[list[Any]] = []
        pairs = cast("list[tuple[Any, Any]]", list(cast(Any, dict).items(value)))
        for key, one in pairs:
            name = f"{where}[{key!r}]" if isinstance(key, str | int) else f"{where}[...]"
            short = where.removesuffix("._modules").removesuffix("._parameters").removesuffix("._buffers")
            inner = f"{short}.{key}" if short != where else name
            items.append([self.value(key, name), self.value(one, inner)])
        node: Node = {"is": "pairs", "kind": "dict", "items": items}
        if kind is OrderedDict:
            node["kind"] = "OrderedDict"
        elif kind is defaultdict:
            factory = cast("defaultdict[object, object]", value).default_factory
            node.update(kind="defaultdict", factory=self.value(factory, where))
        elif kind is not dict:
            of = self._class(kind, where)
            if of["is"] == "unkept":
                return of
            node.update(of=of, **self._state(value, kind, where))
        return node

    def _items(self, value: Any, base: type, name: str, where: str) -> Node:
        if len(value) > MOST_ITEMS:
            return self._lost(where, f"a {name} of {len(value):,}")
        items = self._all(list(cast(Any, base).__iter__(value)), where)
        kind = cast("type[Any]", type(value))
        if kind is base:
            return {"is": "items", "kind": name, "items": items}
        of = self._class(kind, where)
        if of["is"] == "unkept":
            return of
        return {"is": "items", "kind": name, "items": items, "of": of, **self._state(value, kind, where)}

    def _function(self, value: FunctionType, where: str) -> Node:
        """One that was made when another ran, or has no name: by its place in the source, and what it closes over."""
        code = value.__code__
        file = file_of(value.__module__, value.__globals__)
        if value.__module__ not in sys.modules:
            return self._lost(where, f"the function {value.__qualname__}")
        cells: list[Any] = []
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
            cells.append(self._cell(cell, f"{where}.{name}"))
        return {
            "is": "function",
            "module": value.__module__,
            "file": file,
            "name": getattr(code, "co_qualname", value.__qualname__),
            "line": code.co_firstlineno,
            "closure": cells,
            "defaults": self._all(value.__defaults__ or (), where),
            "named_defaults": {
                name: self.value(one, f"{where}.{name}") for name, one in (value.__kwdefaults__ or {}).items()
            },
        }

    def _cell(self, cell: CellType, where: str) -> Any:
        try:
            return self.value(cell.cell_contents, where)
        except ValueError:
            return self._lost(where, "a name without a value")

    def _all(self, values: Sequence[object], where: str) -> list[Any]:
        return [self.value(one, f"{where}[{number}]") for number, one in enumerate(values)]

    def _member(self, kind: type, name: str, where: str) -> Node:
        of = self._class(kind, where)
        return of if of["is"] == "unkept" else {"is": "member", "of": of, "name": name}

    def _class(self, kind: type, where: str) -> Node:
        try:
            return place(kind)
        except NoPlace as error:
            return self._lost(where, f"{a(kind)}, {error}")

    def _placed(self, value: Any, where: str) -> Node:
        try:
            return place(value)
        except NoPlace as error:
            return self._lost(where, f"{getattr(value, '__name__', type(value).__name__)}, {error}")

    def _lost(self, where: str, what: str) -> Node:
        if len(self.unkept) < MOST_NAMED:
            self.unkept.append(f"{where} ({what})")
        return {"is": "unkept", "what": f"{where}, {what}"}


class _Never:
    pass


def a(kind: type) -> str:
    """ "an int64"."""
    return f"{'an' if kind.__name__[:1] in tuple('aeiouAEIO') else 'a'} {kind.__name__}"
