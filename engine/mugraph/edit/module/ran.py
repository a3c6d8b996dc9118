"""Tables that the guards of a kernel module read: the code that ran, and where the objects are that it reads."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

import torch

from mugraph.edit.module.guards import GUARDS
from mugraph.ir.kernel import Rejected
from mugraph.ir.ran import Code, Ran, together
from mugraph.plans.plan import RegionPlan
from mugraph.trace.syntax.definition_text import imported_names, text_of
from mugraph.trace.syntax.definitions import definitions
from mugraph.trace.syntax.source import Source

TABLES = (
    "_PROPERTIES",
    "_MEMBERS",
    "_MODULES",
    "_RAN",
    "_LIBRARY",
    "_HIDING",
    "_ACCESSED",
    "_FUNCTIONS",
    "_OUTSIDE",
    "_BUILTINS",
    "_OWN",
)
"""The tables' names."""


def with_ran(plans: Sequence[RegionPlan], file: str, edited: str | None) -> str:
    """The machinery with the tables that it reads.

    file: the name of the user's file. edited: its text with the kernels' calls; None while nothing is written
    Raises Rejected where two regions ran different code under one name.
    """
    ran: dict[str, Ran] = {}
    for plan in plans:
        for name, one in plan.region.ran.items():
            both = together(ran.get(name, one), one)
            if both is None:
                raise Rejected(f"two regions ran different code called {name}")
            ran[name] = both
    outside = {name: dotted for plan in plans for name, dotted in plan.region.outside.items()}
    definitions, imported = _definitions(edited)
    tables = [
        "# The code that ran, by the names that conditions call it; a function's is its only method",
        *_lines("_RAN", [f"{name!r}: {_methods(one, definitions, imported)}" for name, one in ran.items()]),
        f"_LIBRARY = frozenset({sorted(name for name, one in ran.items() if one.library)!r})",
        *_lines("_PROPERTIES", [f"{name!r}: {_set(one.properties)}" for name, one in ran.items()]),
        *_lines("_MEMBERS", [f"{name!r}: {_set(one.members)}" for name, one in ran.items()]),
        *_lines("_HIDING", [f"{name!r}: {_hiding(one)}" for name, one in ran.items()]),
        "_ACCESSED = {what for what, methods in _RAN.items() if methods.keys() & _OWN_ACCESS}",
        f"_FUNCTIONS = [{', '.join(_functions(plans))}]",
        f"_OUTSIDE = [{', '.join(f'({n!r}, _named({d!r}))' for n, d in outside.items() if d)}]",
        f"_BUILTINS = frozenset({sorted(n for n, d in outside.items() if not d)!r})",
        f"_OWN = {sorted(_own_names(plans))!r}",
    ]
    modules = f"_MODULES = frozenset({sorted(name for name, one in ran.items() if one.is_module)!r})"
    return "\n".join([GUARDS.replace("@FILE@", file).rstrip(), "", "", modules, *tables])


def _set(names: Iterable[str]) -> str:
    return f"{{{', '.join(map(repr, sorted(names)))}}}" if names else "set()"


def _hiding(ran: Ran) -> str:
    """Attributes that an object must not have itself: they would hide its class's methods, or a module's parameters."""
    names = f"{', '.join(map(repr, sorted({*ran.methods, *ran.members})))}"
    if ran.is_module:
        return f"frozenset({{{names}, *_BEFORE_FORWARD}})" if names else "frozenset(_BEFORE_FORWARD)"
    return f"frozenset({{{names}}})" if names else "frozenset()"


def _lines(name: str, items: Sequence[str]) -> list[str]:
    if not items:
        return [f"{name} = {{}}"]
    return [f"{name} = {{", *(f"    {item}," for item in items), "}"]


def _methods(ran: Ran, definitions: Mapping[str, str], imported: frozenset[str]) -> str:
    chains = {"": (ran.function,)} if ran.function is not None else ran.methods
    made: list[str] = []
    for name, codes in chains.items():
        made.append(f"{name!r}: ({' '.join(f'{_code(code, definitions, imported)},' for code in codes)})")
    return f"{{{', '.join(made)}}}"


def _code(code: Code, definitions: Mapping[str, str], imported: frozenset[str]) -> str:
    """imported: names that the edited file imports"""
    parts, names = [repr(code.qualname)], code.imported
    if code.text:
        parts.append(_text(code.text))
        edited = definitions.get(code.qualname, code.text)
        if edited != code.text:
            parts.append(f"edited={_text(edited)}")
            names = tuple(sorted({*names, *(name for name in imported if re.search(rf"\b{name}\b", edited))}))
    values = (("free", code.free), ("defaults", code.defaults), ("wrapped", code.wrapped), ("imported", names))
    for name, value in values:
        if value:
            parts.append(f"{name}={value!r}")
    if code.outside:
        parts.append(f"outside={dict(code.outside)!r}")
    return f"_Code({', '.join(parts)})"


def _text(text: str) -> str:
    """A definition's text as Python string literals, one for each line."""
    lines = text.splitlines(keepends=True)
    if len(lines) == 1:
        return repr(text)
    return "(\n" + "".join(f"        {line!r}\n" for line in lines) + "    )"


def _definitions(edited: str | None) -> tuple[Mapping[str, str], frozenset[str]]:
    """Functions of the edited file by their qualified names, and the names that it imports."""
    if edited is None:
        return {}, frozenset()
    source = Source("", edited)
    found = {
        one.name: text_of(source, one.node)
        for one in definitions(source.tree, local=True)
        if not isinstance(one.node, ast.ClassDef)
    }
    return found, imported_names(source.tree)


_OWNERS: Mapping[str, object] = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch._C._nn": sys.modules["torch._C._nn"],
    "Tensor": torch.Tensor,
}
_OPERATORS = {"div": "truediv", "true_divide": "truediv", "multiply": "mul", "subtract": "sub", "negative": "neg"}


def _own_names(plans: Sequence[RegionPlan]) -> set[str]:
    """Names of the user's file that regions read through `_here`."""
    read = {node for plan in plans for guard in plan.region.guards for node in ast.walk(ast.parse(guard))}
    found: set[str] = set()
    for node in read:
        match node:
            case ast.Subscript(ast.Name("_here"), ast.Constant(str(name))):
                found.add(name)
            case _:
                pass
    return found


def _functions(plans: Sequence[RegionPlan]) -> list[str]:
    """Where the functions are that the regions' code calls: PyTorch's, and Python's. Functions of PyTorch with the same
    name are included, since one may stand behind the other: `F.layer_norm` calls `torch.layer_norm`, `a * b` is
    `Tensor.mul`."""
    owners: dict[str, dict[str, None]] = {}
    for plan in plans:
        for call in plan.region.calls:
            owner, _, name = call.target.removesuffix(".__get__").rpartition(".")
            owners.setdefault(owner, {})[name] = None
            plain = _OPERATORS.get(name, name).strip("_")
            spelled = [name, plain, *(f"__{kind}{plain}__" for kind in ("", "r", "i"))]
            for other, space in _OWNERS.items():
                owners.setdefault(other, {}).update((s, None) for s in spelled if s in dir(space) and s.strip("_"))
        builtin = {name for name, dotted in plan.region.outside.items() if not dotted}
        for one in plan.region.ran.values():
            codes = [code for chain in one.methods.values() for code in chain]
            codes += [one.function] if one.function is not None else []
            builtin |= {name for code in codes for name, dotted in code.outside.items() if not dotted}
        owners.setdefault("builtins", {}).update((name, None) for name in sorted(builtin))
        for target in plan.region.called:
            owner, _, name = target.rpartition(".")
            owners.setdefault(owner, {})[name] = None
    owners = {owner: names for owner, names in owners.items() if names}
    return [
        f"_as_they_came({', '.join(map(repr, (owner, *sorted(names))))})" for owner, names in sorted(owners.items())
    ]
