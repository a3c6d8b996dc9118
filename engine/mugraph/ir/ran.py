"""Code of the user's that ran inside a region: a region is right for as long as it is what runs there.

As data that travels: it is compared with what is there when the region runs (edit/module/guards.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast


@dataclass(frozen=True, slots=True)
class Code:
    """One function.

    qualname: as Python has it: "RMSNorm.forward", "make.<locals>.Block.forward"
    text:     the lines of its definition without decorators, indented as in its file; of a lambda, the expression.
              "": a function of PyTorch's or of Python's, which is known by its name
    free:     variables of the functions around it that it reads
    defaults: what its default arguments are, positional ones first (`said_of`)
    wrapped:  functions that decorators put around it, outermost first: "torch.utils._contextlib.…"
    around:   the same, those whose code was watched while it ran
    outside:  names of its module that hold what is not the user's: "F" -> "torch.nn.functional"; a builtin that the
              module does not hide: "len" -> ""
    imported: names that it reads and its module imports: calls of what they hold are compiled in their own way
    """

    qualname: str
    text: str = ""
    free: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    wrapped: tuple[str, ...] = ()
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    imported: tuple[str, ...] = ()
    around: tuple[Code, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """A class with those of its methods that ran, or a function.

    methods:  name -> its definitions along the class's bases, the one that counts first, then those that it hides
    function: where it is no class
    library:  the module that has a class of PyTorch's, "torch.nn.modules.linear"; "" for one of the user's
    is_module: whether it is a torch.nn.Module, which runs hooks before its `forward`
    properties: of a class: attributes that it computes, whether they were read or not
    members:  of one: names of its parts -> where it keeps them: "_modules", "_parameters", "_buffers"; "" where some
              objects of the class have the name otherwise (`self.downsample = None`)
    """

    methods: Mapping[str, tuple[Code, ...]] = field(default_factory=dict[str, tuple[Code, ...]])
    function: Code | None = None
    library: str = ""
    is_module: bool = False
    members: Mapping[str, str] = field(default_factory=dict[str, str])
    properties: tuple[str, ...] = ()

    @property
    def parts(self) -> Mapping[str, str]:
        """Members that all objects of the class keep in one place."""
        return {name: kept for name, kept in self.members.items() if kept}


def joined_members(first: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Where objects of one class keep their parts, as two of them do."""
    both = {**first, **other}
    return {name: kept if first.get(name, kept) == kept else "" for name, kept in both.items()}


def together(first: Ran, other: Ran) -> Ran | None:
    """What ran of one class in either of two runs; None where they ran different code under one name."""
    methods = dict(first.methods)
    if any(methods.setdefault(name, chain) != chain for name, chain in other.methods.items()):
        return None
    same = replace(first, methods={}, members={}) == replace(other, methods={}, members={})
    members = joined_members(first.members, other.members)
    return replace(first, methods=methods, members=members) if same else None


def said_of(value: object) -> str:
    """A constant as text, the same text for equal constants; of anything else only its kind."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(said_of(item) for item in cast('tuple[object, ...]', value))},)"
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device", "memory_format", "layout"):
        return str(value)
    named = value if hasattr(value, "__qualname__") else kind
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
