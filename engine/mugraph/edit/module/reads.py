"""What a region reads, as expressions over the names that the user's code has there: its arguments, the tensors, and
the objects, classes and functions that its guards are about."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.edit.module.closures import apart
from mugraph.edit.module.expressions import expression_of, renamed
from mugraph.edit.module.guard_paths import by_members, members_of, name_for
from mugraph.edit.module.masks import masks_of
from mugraph.edit.module.straight import lasting, straight
from mugraph.edit.module.wrapper_sizes import numbers_read
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import Scope
from mugraph.ir.numbers import NUMBER
from mugraph.ir.ran import Ran
from mugraph.plans.plan import RegionPlan
from mugraph.plans.tf32 import ASKS

MODULES_OWN = frozenset(
    {"_is", "_is_object", "_unchanged", "_runs", "_is_the", "_here", "_on_default_device", "_default_type", ASKS, "int"}
    | {"_spelled"}
    | {NUMBER, "_math"}
)
"""Names in guards that the kernel module defines itself, or means as Python does; other global names are those of the
user's file."""
_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['([^\W\d]\w*)'\]")
_ITEM = re.compile(r"(\w+)\[-?\d+\]")
_PATH = re.compile(r"\w+(?:\.\w+|\['\w+'\]|\[-?\d+\])*")
_IN_FILE = re.compile(r"_here\['\w+'\](?:\.__globals__\['\w+'\])*")
_OF_MODULE = re.compile(r"type\([^()]*\)")


def arguments(plan: RegionPlan) -> tuple[str, ...]:
    """What the user's code passes: the live-ins in their order where they are called directly, else the names that
    live-ins and guards start from, those of its function first.

    Raises Rejected when one of them is no expression.
    """
    region = plan.region
    if is_direct(plan):
        return tuple(live_in.expression for live_in in region.live_ins)
    found: dict[str, None] = {}
    for expression in (*(live_in.expression for live_in in region.live_ins), *region.guards):
        found |= dict.fromkeys(_names_in(expression, region.function))
    first = [name for name in region.function_args if name in found]
    return (*first, *(name for name in found if name not in first))


def is_direct(plan: RegionPlan) -> bool:
    """Whether the tensors are all the test needs: the user's code has each under a name, and no other condition must
    hold."""
    return not plan.region.guards and all(live_in.expression.isidentifier() for live_in in plan.region.live_ins)


@dataclass(frozen=True)
class Reads:
    """What a region reads, as its functions read it (`self._modules['gate']`).

    parameters: of its functions; tensors: its live-ins, and whole numbers that say a size; things: classes and
    functions; modules: those whose conditions last until a dictionary changes (`lasting`), which are kept; guards: the
    other conditions; own: modules that a method reads of itself; tests: lines that define what guards call
    """

    parameters: Mapping[str, str]
    tensors: Sequence[str]
    things: Sequence[str]
    modules: Mapping[str, Ran]
    kept: Sequence[str]
    guards: Sequence[str]
    own: Sequence[str]
    tests: Sequence[str]

    @property
    def items(self) -> Mapping[str, str]:
        """Tensors that are items of an argument (`cos, sin = rotary`), and what they are called where answers are
        remembered: they are other tensors at each call, so they are handed over like arguments."""
        scope, given = Scope(self.parameters.values()), {*self.parameters.values()}
        found = [one for one in dict.fromkeys(self.tensors) if (match := _ITEM.fullmatch(one)) and match[1] in given]
        return {one: scope.unique(name_for(one)) for one in found}


def read_of(plan: RegionPlan, scope: Scope, classes: frozenset[str]) -> Reads:
    region = plan.region
    names = {name: name if name == "self" else scope.unique(name) for name in arguments(plan)}
    own = own_modules(plan, classes)
    members: dict[str, Mapping[str, str]] = {"self": dict.fromkeys(own, "_modules")} if own else {}
    members |= members_of(region.ran, region.guards)

    def text(expression: str) -> str:
        return renamed(by_members(expression, members), names)

    guards, tests = apart(plan.name, [text(guard) for guard in region.guards])
    modules = _modules_of(guards, region.ran)
    kept = [guard for guard in guards if lasting(guard, modules)]
    guards = [check for guard in guards if guard not in kept for check in straight(guard, region.ran)]
    things = [text(thing) for thing in things_of(plan, classes)[0]]
    tensors = [text(one) for one in (*(one.expression for one in region.live_ins), *numbers_read(region))]
    return Reads(names, tensors, things, modules, kept, guards, own, tests)


Paths = tuple[str, str, str, str, str]


def paths_of(plan: RegionPlan, classes: frozenset[str]) -> Paths | None:
    """For `_learn`: the parameters, objects whose classes count, modules, tensors, and functions; None where one is not
    simply what modules, or files, hold under a name, or sizes vary, or a mask's values or where tensors lie count."""
    if plan.region.dynamic is not None or masks_of(plan) or plan.region.stored:
        return None
    read = read_of(plan, Scope(frozenset()), classes)
    functions = [thing for thing in read.things if _IN_FILE.fullmatch(thing)]
    objects = [thing[5:-1] for thing in read.things if _OF_MODULE.fullmatch(thing)]
    tensors = [read.items.get(one, one) for one in read.tensors]
    every = [*objects, *read.modules, *tensors]
    if not all(map(_PATH.fullmatch, every)):
        return None
    parameters = (*read.parameters.values(), *read.items.values())
    groups = parameters, objects, read.modules if read.kept else (), tensors, functions
    names, objects, modules, tensors, functions = (
        ", ".join(_MEMBER.sub(r".\1", one) for one in group) for group in groups
    )
    return names, objects, modules, tensors, functions


def looked_up(plan: RegionPlan, things: Sequence[str], guards: Sequence[str]) -> list[str]:
    """The guards for the case that all else is known to hold: functions that neither a module's class nor a file has
    under a name, as those of a table, and classes of objects that are no modules, are only looked up. Their code was
    compared with all else."""
    places = {
        thing: at for at, thing in enumerate(things) if not (_IN_FILE.fullmatch(thing) or _OF_MODULE.fullmatch(thing))
    }
    asked = [f"_is_still({plan.name!r}, {at}, {thing})" for thing, at in places.items()]
    for guard in guards:
        found = expression_of(guard)
        match found.tree:
            case ast.Call(ast.Name("_is_object"), [thing, ast.Constant(str(what))]) if (
                _class_of(found.of(thing)) in places
            ):
                asked.append(f"not _hides({found.of(thing)}.__dict__, _HIDING[{what!r}])")
            case _:
                asked.append(guard)
    return asked


def _modules_of(guards: Sequence[str], ran: Mapping[str, Ran]) -> dict[str, Ran]:
    """Expressions of the modules that the guards know to be of a class that was analysed."""
    found: dict[str, Ran] = {}
    for guard in guards:
        asked = expression_of(guard)
        match asked.tree:
            case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]) if what in ran:
                found[asked.of(module)] = ran[what]
            case _:
                pass
    return found


def own_modules(plan: RegionPlan, classes: frozenset[str]) -> tuple[str, ...]:
    """The modules that the method of a module reads of itself (`self.norm`): they can be read from where it keeps
    them, as to ask for an attribute takes a call in Python."""
    owner, _, _ = plan.region.function.rpartition(".")
    if owner not in classes or is_direct(plan):
        return ()
    found = [re.fullmatch(r"_is\(self\.(\w+), '[^']*'\)", guard) for guard in plan.region.guards]
    return tuple(dict.fromkeys(match[1] for match in found if match))


def things_of(plan: RegionPlan, classes: frozenset[str]) -> tuple[tuple[str, ...], tuple[str | tuple[str, ...], ...]]:
    """Expressions for the classes and functions whose code must be what was analysed, and what they are called."""
    own = own_modules(plan, classes)
    found: dict[str, str | tuple[str, ...]] = {"type(self)": own} if own else {}
    for guard in plan.region.guards:
        asked = expression_of(guard)
        match asked.tree:
            case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]):
                found[f"type({asked.of(module)})"] = what
            case ast.Call(ast.Name("_is_object"), [thing, ast.Constant(str(what))]):
                found[_class_of(asked.of(thing))] = what
            case ast.Call(ast.Name("_runs"), [function, ast.Constant(str(what))]):
                found[asked.of(function)] = what
            case _:
                pass
    return tuple(found), tuple(found.values())


def _class_of(thing: str) -> str:
    """Of an object that is no module, in a form that is told apart from a module's (`_OF_MODULE`)."""
    return f"{thing}.__class__"


def _names_in(expression: str, function: str) -> list[str]:
    """Names that the expression reads, in order; those that the kernel module defines itself are not among them."""
    try:
        return [node.id for node in expression_of(expression).names if node.id not in MODULES_OWN]
    except SyntaxError:
        raise Rejected(f"The condition {expression!r} of {function} is no Python expression.") from None
