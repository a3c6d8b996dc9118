"""Tables of a kernel module that the guards read: the code that ran, and where the objects are that it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from mugraph.edit.module.expressions import expression_of
from mugraph.edit.module.reads import Paths, things_of
from mugraph.ir.kernel import Rejected
from mugraph.ir.ran import Code, Ran, together
from mugraph.plans.plan import RegionPlan
from mugraph.plans.tf32 import asked
from mugraph.trace.pytorch import owned
from mugraph.trace.syntax.definition_text import imported_names, text_of
from mugraph.trace.syntax.definitions import definitions
from mugraph.trace.syntax.source import Source

TABLES = (
    "_SOURCE",
    "_CAPABILITY",
    "_RAN",
    "_REGIONS",
    "_CALLED_FUNCTIONS",
    "_OUTSIDE_NAMES",
    "_BUILTINS",
    "_OWN",
    "_PATHS",
    "_TF32",
)
"""The names of a kernel module's tables, `_CASES` aside."""


def tables(
    plans: Sequence[RegionPlan],
    file: str,
    capability: int,
    edited: str | None,
    classes: frozenset[str],
    paths: Mapping[str, Paths | None],
) -> str:
    """What the shared runtime is told of the regions.

    file: the name of the user's file. edited: its text with the kernels' calls; None while nothing is written.
    classes: its classes that are modules'. paths: by region, what it reads
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
    built_in = sorted(name for name, dotted in outside.items() if not dotted)
    return "\n".join(
        [
            "# What the kernels rely on. _RAN: the code that ran, by the names that _REGIONS calls it",
            f"_SOURCE, _CAPABILITY = {file!r}, ({capability // 10}, {capability % 10})",
            *_lines("_RAN", [f"{name!r}: {_ran(one, definitions, imported)}" for name, one in ran.items()]),
            *_lines("_REGIONS", [f"{plan.name!r}: {things_of(plan, classes)[1]!r}" for plan in plans]),
            *_lines("_PATHS", [f"{name!r}: {one!r}" for name, one in paths.items() if one]),
            *_lines("_TF32", [f"{plan.name!r}: {one!r}" for plan in plans if (one := asked(plan.region.guards))]),
            *_lines("_CALLED_FUNCTIONS", [f"{owner!r}: {names!r}" for owner, names in _functions(plans).items()]),
            f"_OUTSIDE_NAMES = { ({name: dotted for name, dotted in outside.items() if dotted})!r}",
            f"_BUILTINS, _OWN = frozenset({built_in!r}), {sorted(_own_names(plans))!r}",
        ]
    )


def _lines(name: str, items: Sequence[str]) -> list[str]:
    if not items:
        return [f"{name} = {{}}"]
    return [f"{name} = {{", *(f"    {item}," for item in items), "}"]


def _ran(ran: Ran, definitions: Mapping[str, str], imported: frozenset[str]) -> str:
    parts = [f"methods={_methods(ran, definitions, imported)}"]
    parts += ["library=True"] if ran.library else []
    parts += ["module=True"] if ran.is_module else []
    for name, names in (("members", ran.parts), ("properties", ran.properties)):
        parts += [f"{name}={{{', '.join(map(repr, sorted(names)))}}}"] if names else []
    return f"dict({', '.join(parts)})"


def _methods(ran: Ran, definitions: Mapping[str, str], imported: frozenset[str]) -> str:
    chains = {"": (ran.function,)} if ran.function is not None else ran.methods
    made: list[str] = []
    for name, codes in chains.items():
        made.append(f"{name!r}: ({' '.join(f'{_code(code, definitions, imported)},' for code in codes)})")
    return f"{{{', '.join(made)}}}"


def _code(code: Code, definitions: Mapping[str, str], imported: frozenset[str]) -> str:
    """imported: names that the edited file imports"""
    parts, names = [f"qualname={code.qualname!r}"], code.imported
    if code.text:
        parts.append(f"text={_text(code.text)}")
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
    if code.around:
        parts.append(f"around=({' '.join(f'{_code(one, definitions, imported)},' for one in code.around)})")
    return f"dict({', '.join(parts)})"


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


_OPERATORS = {"div": "truediv", "true_divide": "truediv", "multiply": "mul", "subtract": "sub", "negative": "neg"}


def _own_names(plans: Sequence[RegionPlan]) -> set[str]:
    """Names of the user's file that regions read through `_here`."""
    read = {node for plan in plans for guard in plan.region.guards for node in ast.walk(expression_of(guard).tree)}
    found: set[str] = set()
    for node in read:
        match node:
            case ast.Subscript(ast.Name("_here"), ast.Constant(str(name))):
                found.add(name)
            case _:
                pass
    return found


def _functions(plans: Sequence[RegionPlan]) -> Mapping[str, tuple[str, ...]]:
    """Where the functions are that the regions' code calls: PyTorch's, and Python's. Functions of PyTorch with the same
    name are included, since one may stand behind the other: `F.layer_norm` calls `torch.layer_norm`, `a * b` is
    `Tensor.mul`."""
    owners: dict[str, dict[str, None]] = {}
    spaces = owned.names()
    for plan in plans:
        for call in plan.region.calls:
            owner, _, name = call.target.removesuffix(".__get__").rpartition(".")
            owners.setdefault(owner, {})[name] = None
            plain = _OPERATORS.get(name, name).strip("_")
            spelled = [name, plain, *(f"__{kind}{plain}__" for kind in ("", "r", "i"))]
            for other, names in spaces.items():
                owners.setdefault(other, {}).update((s, None) for s in spelled if s in names and s.strip("_"))
        builtin = {name for name, dotted in plan.region.outside.items() if not dotted}
        for one in plan.region.ran.values():
            codes = [code for chain in one.methods.values() for code in chain]
            codes += [one.function] if one.function is not None else []
            builtin |= {name for code in codes for name, dotted in code.outside.items() if not dotted}
        owners.setdefault("builtins", {}).update((name, None) for name in sorted(builtin))
        for target in plan.region.called:
            owner, _, name = target.rpartition(".")
            owners.setdefault(owner, {})[name] = None
    return {owner: tuple(sorted(names)) for owner, names in sorted(owners.items()) if names}
