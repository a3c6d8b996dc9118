"""What the user's file calls: two functions over the names its own code reads there (`self`, `x`).

    def norm_linear_fits(self, x): whether all that tracing relied on still holds, for tensors as the kernel wants them
    def norm_linear(self, x):      the replacement; it reads parameters where the user's code reads them

For TorchScript the test is the constant False, so it compiles the original.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mugraph.edit.module.closures import apart
from mugraph.edit.module.guard_paths import by_members, hoisted, members_of, name_for, with_names
from mugraph.edit.module.masks import masks_of
from mugraph.edit.module.operator import call, returns
from mugraph.edit.module.straight import lasting, none_of, straight
from mugraph.edit.module.wrapper_sizes import numbers_read
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import Scope
from mugraph.ir.ran import Ran
from mugraph.plans.plan import RegionPlan
from mugraph.plans.tf32 import ASKS

MODULES_OWN = frozenset(
    {"_is", "_is_object", "_unchanged", "_runs", "_is_the", "_here", "_on_default_device", "_default_type", ASKS, "int"}
)
"""Names in guards that the kernel module defines itself, or means as Python does; other global names are those of the
user's file."""


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


def is_alone(plan: RegionPlan) -> bool:
    """Whether the replacement is what the user's code calls: one of several steps is called by a function of its own,
    as it may be written anew (steps.py)."""
    return is_direct(plan) and (len(plan.steps) == 1 or plan.region.dynamic is not None)


def on_tensors(plan: RegionPlan) -> str:
    """Name of the replacement as a function of the live-ins' tensors."""
    return plan.name if is_alone(plan) else f"_{plan.name}_on_tensors"


def tensors_fit(plan: RegionPlan) -> str:
    """Name of the test as a function of the live-ins' tensors."""
    return f"_{plan.name}_tensors_fit"


def modules_fit(plan: RegionPlan) -> str:
    """Name of the test as a function of modules."""
    return f"_{plan.name}_modules_fit"


def entry_names(plan: RegionPlan) -> tuple[str, ...]:
    """Every name the region's functions bind in the kernel module."""
    own = (plan.name, f"{plan.name}_fits", f"_{plan.name}_fits", f"_{plan.name}_reference")
    own += (f"_{plan.name}_known", f"_{plan.name}_done", f"_{plan.name}_given", f"_{plan.name}_run")
    return tuple(dict.fromkeys((*own, on_tensors(plan), tensors_fit(plan), modules_fit(plan))))


@dataclass(frozen=True)
class _Read:
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


def _read(plan: RegionPlan, scope: Scope, classes: frozenset[str]) -> _Read:
    region = plan.region
    renamed = {name: name if name == "self" else scope.unique(name) for name in arguments(plan)}
    own = own_modules(plan, classes)
    members: dict[str, Mapping[str, str]] = {"self": dict.fromkeys(own, "_modules")} if own else {}
    members |= members_of(region.ran, region.guards)

    def text(expression: str) -> str:
        return _renamed(by_members(expression, members), renamed)

    guards, tests = apart(plan.name, [text(guard) for guard in region.guards])
    modules = _modules_of(guards, region.ran)
    kept = [guard for guard in guards if lasting(guard, modules)]
    guards = [check for guard in guards if guard not in kept for check in straight(guard, region.ran)]
    things = [text(thing) for thing in things_of(plan, classes)[0]]
    tensors = [text(one) for one in (*(one.expression for one in region.live_ins), *numbers_read(region))]
    return _Read(renamed, tensors, things, modules, kept, guards, own, tests)


def paths_of(plan: RegionPlan, classes: frozenset[str]) -> tuple[str, str, str, str, str] | None:
    """For `_learn`: the parameters, objects whose classes count, modules, tensors, and functions; None where one is not
    simply what modules, or files, hold under a name, or sizes vary, or a mask's values count."""
    if plan.region.dynamic is not None or masks_of(plan):
        return None
    read = _read(plan, Scope(frozenset()), classes)
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


_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['([^\W\d]\w*)'\]")
_ITEM = re.compile(r"(\w+)\[-?\d+\]")
_PATH = re.compile(r"\w+(?:\.\w+|\['\w+'\]|\[-?\d+\])*")
_IN_FILE = re.compile(r"_here\['\w+'\](?:\.__globals__\['\w+'\])*")
_OF_MODULE = re.compile(r"type\([^()]*\)")


def _looked_up(plan: RegionPlan, things: Sequence[str], guards: Sequence[str]) -> list[str]:
    """The guards for the case that all else is known to hold: functions that neither a module's class nor a file has
    under a name, as those of a table, and classes of objects that are no modules, are only looked up. Their code was
    compared with all else."""
    places = {
        thing: at for at, thing in enumerate(things) if not (_IN_FILE.fullmatch(thing) or _OF_MODULE.fullmatch(thing))
    }
    asked = [f"_is_still({plan.name!r}, {at}, {thing})" for thing, at in places.items()]
    for guard in guards:
        match ast.parse(guard, mode="eval").body:
            case ast.Call(ast.Name("_is_object"), [thing, ast.Constant(str(what))]) if _class_of(thing) in places:
                asked.append(f"not _hides({ast.unparse(thing)}.__dict__, _HIDING[{what!r}])")
            case _:
                asked.append(guard)
    return asked


def entry_text(plan: RegionPlan, module_names: frozenset[str], classes: frozenset[str]) -> str:
    """The functions. module_names: globals that no parameter may hide. classes: of the file, that are modules'"""
    region, scope = plan.region, Scope(module_names)
    paths = paths_of(plan, classes)
    lasts = paths is not None
    if is_direct(plan):
        names = [scope.unique(name) for name in arguments(plan)]
        given = [f"{name}: torch.Tensor" for name in names]
        test = _test(plan, given, _both(plan, names, lasts))
        called = call("return ", _by_steps(plan), names, width=104)
        return test if is_alone(plan) else "\n".join([test, "", "", *_replaced(plan, given, called)])
    read = _read(plan, scope, classes)
    renamed, tested, guards, tests = read.parameters, read.tensors, list(read.guards), list(read.tests)
    tensors = {live_in.expression for live_in in region.live_ins}
    parameters = [f"{new}: {'torch.Tensor' if old in tensors else 'Any'}" for old, new in renamed.items()]
    given = [*renamed.values(), *read.items]
    known = call("if not _dynamo() and ", f"_{plan.name}_known", given, ":") if lasts else []
    if lasts:
        bound, also = hoisted(_looked_up(plan, read.things, guards), Scope({*module_names, *renamed.values()}))
        known += [f"    {line}" for line in (*bound, f"return {' and '.join(map(_bracketed, also)) or True}")]
    if read.own:
        guards = [*none_of([f"{name!r} in self.__dict__" for name in read.own], 3), *guards]
    together = f"f({', '.join(read.modules)})"
    called = [f"f({', '.join(read.things)})", *guards, *([together] if read.kept else []), f"f({', '.join(tested)})"]
    bindings, (first, *checks, last) = hoisted(called, scope)
    if read.kept:
        inner = [repr(plan.name), _tuple(_arguments_of(first)), _tuple(_arguments_of(checks.pop())), modules_fit(plan)]
        lines = call("", "_as_analysed", inner, width=100)
        straightened = [check for guard in read.kept for check in straight(guard, region.ran)]
        tests += _modules_fit(plan, straightened, read.modules)
    else:
        lines = call("", "_same_code", [repr(plan.name), *_arguments_of(first)], width=100)
    lines += [f"and {_bracketed(check)}" for check in checks]
    lines += call("and ", tensors_fit(plan), _arguments_of(last), width=100)
    lines += call("and ", "_learn", [repr(plan.name), *given], width=100) if lasts else []
    test = [
        "try:",
        *(f"    {line}" for line in known),
        *(["    _find_file()"] if any("_here[" in line for line in bindings) else []),
        *(f"    {line}" for line in bindings),
        "    return (",
        *(f"        {line}" for line in lines),
        "    )",
        "except Exception:  # something is not there any more, or answers in its own way: the original says so",
        "    return False",
    ]
    names = ", ".join(renamed.values())
    quick: list[str] = []
    if paths is not None and paths[1]:  # read of an object
        found, way = (scope.unique("result"), "done") if len(plan.steps) == 1 else (scope.unique("tensors"), "given")
        quick = [f"if not _dynamo() and ({found} := _{plan.name}_{way}({', '.join(given)})) is not None:"]
        quick.append(f"    return {found}" if way == "done" else f"    return _{plan.name}_run(*{found})")
    bound, (values,) = hoisted([f"f({', '.join(tested)})"], Scope({*module_names, *renamed.values()}))
    called = call("return ", _by_steps(plan), _arguments_of(values), width=104)
    return "\n".join(
        [
            _test(plan, parameters, call("return ", f"_{plan.name}_fits", list(renamed.values()), width=100)),
            "",
            "",
            *tests,
            f"def _{plan.name}_fits({names}):",
            *(f"    {line}" for line in test),
            "",
            "",
            *_replaced(plan, parameters, [*quick, *bound, *called]),
        ]
    )


def _by_steps(plan: RegionPlan) -> str:
    """What runs the steps: where sizes vary, nothing is written anew."""
    steps = on_tensors(plan)
    return steps if plan.region.dynamic is not None else f"({steps} if _dynamo() else _{plan.name}_run)"


def _replaced(plan: RegionPlan, parameters: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The function that the user's code calls."""
    return [
        "@torch.jit.unused",
        *call("def ", plan.name, parameters, f" -> {returns(len(plan.region.live_outs))}:", width=110),
        f'    """{plan.region.function}; only where {plan.name}_fits says yes."""',
        *(f"    {line}" for line in lines),
    ]


def _modules_of(guards: Sequence[str], ran: Mapping[str, Ran]) -> dict[str, Ran]:
    """Expressions of the modules that the guards know to be of a class that was analysed."""
    found: dict[str, Ran] = {}
    for guard in guards:
        match ast.parse(guard, mode="eval").body:
            case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]) if what in ran:
                found[ast.unparse(module)] = ran[what]
            case _:
                pass
    return found


def _modules_fit(plan: RegionPlan, checks: Sequence[str], modules: Iterable[str]) -> list[str]:
    """The test of modules, which is made again only when something about them has changed."""
    scope = Scope({"self"})
    names = {module: module if module.isidentifier() else scope.unique(name_for(module)) for module in modules}
    bindings, checks = hoisted([with_names(check, names) for check in checks], Scope(names.values()))
    lines = [f"{'and ' if number else ''}{_bracketed(check)}" for number, check in enumerate(checks)]
    return [
        *call("def ", modules_fit(plan), list(names.values()), ":", width=110),
        *(f"    {line}" for line in bindings),
        "    return (",
        *(f"        {line}" for line in lines),
        "    )",
        "",
        "",
    ]


def _test(plan: RegionPlan, parameters: Sequence[str], answer: Sequence[str]) -> str:
    """What the user's code asks."""
    lines = [
        *call("def ", f"{plan.name}_fits", parameters, " -> bool:", width=110),
        f'    """Whether {plan.name} may run: all is as it was when {plan.region.function} was analysed."""',
        "    if is_scripting():  # TorchScript compiles the original",
        "        return False",
        "    else:",
        *(f"        {line}" for line in answer),
    ]
    return "\n".join(lines)


def _both(plan: RegionPlan, names: Sequence[str], lasts: bool) -> list[str]:
    if not lasts:
        return call(f"return _same_code({plan.name!r}) and ", tensors_fit(plan), names, width=100)
    return [
        "return (",
        *(f"    {line}" for line in call("(not _dynamo() and ", f"_{plan.name}_known", names, ")", width=96)),
        *(f"    {line}" for line in call(f"or (_same_code({plan.name!r}) and ", tensors_fit(plan), names, width=96)),
        *(f"    {line}" for line in call("and ", "_learn", [repr(plan.name), *names], ")", width=96)),
        ")",
    ]


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
        match ast.parse(guard, mode="eval").body:
            case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]):
                found[f"type({ast.unparse(module)})"] = what
            case ast.Call(ast.Name("_is_object"), [thing, ast.Constant(str(what))]):
                found[_class_of(thing)] = what
            case ast.Call(ast.Name("_runs"), [function, ast.Constant(str(what))]):
                found[ast.unparse(function)] = what
            case _:
                pass
    return tuple(found), tuple(found.values())


def _class_of(thing: ast.expr) -> str:
    """Of an object that is no module, in a form that is told apart from a module's (`_OF_MODULE`)."""
    return f"{ast.unparse(thing)}.__class__"


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _arguments_of(text: str) -> list[str]:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return [ast.unparse(argument) for argument in node.args]


def _names_in(expression: str, function: str) -> list[str]:
    """Names that the expression reads, in order. `type(...)` and other built-in functions that it calls are not among
    them: guards mean the built-in ones."""
    tree = _parsed(expression, function)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id not in MODULES_OWN]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    nodes = [node for node in nodes if not (id(node) in called and hasattr(builtins, node.id))]
    return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def _parsed(expression: str, function: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise Rejected(f"The condition {expression!r} of {function} is no Python expression.") from None


def _bracketed(check: str) -> str:
    """A condition as text that can stand beside `and`."""
    match ast.parse(check, mode="eval").body:
        case ast.BoolOp(ast.Or()) | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
            return f"({check})"
        case _:
            return check


def _renamed(expression: str, names: Mapping[str, str]) -> str:
    if all(old == new for old, new in names.items()):
        return expression
    tree = ast.parse(expression, mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and not (id(node) in called and hasattr(builtins, node.id)):
            node.id = names[node.id]
    return ast.unparse(tree)
