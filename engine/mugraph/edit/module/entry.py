"""What the user's file calls: two functions over the names its own code reads there (`self`, `x`).

    def norm_linear_fits(self, x): whether all that tracing relied on still holds, for tensors as the kernel wants them
    def norm_linear(self, x):      the replacement; it reads parameters where the user's code reads them

For TorchScript the test is the constant False, so it compiles the original.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from mugraph.edit.module.expressions import expression_of, substituted
from mugraph.edit.module.guard_paths import hoisted, name_for
from mugraph.edit.module.operator import call, returns
from mugraph.edit.module.reads import Paths, arguments, is_direct, looked_up, read_of
from mugraph.edit.module.straight import none_of, straight
from mugraph.ir.names import Scope
from mugraph.plans.plan import RegionPlan


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


def _others(plan: RegionPlan) -> str:
    """Name of the test of what is asked at every call, of all that the region's test remembers as well."""
    return f"_{plan.name}_others"


def entry_names(plan: RegionPlan) -> tuple[str, ...]:
    """Every name the region's functions bind in the kernel module."""
    own = (plan.name, f"{plan.name}_fits", f"_{plan.name}_fits", f"_{plan.name}_reference")
    own += (
        f"_{plan.name}_known",
        f"_{plan.name}_refused",
        f"_{plan.name}_done",
        f"_{plan.name}_given",
        f"_{plan.name}_run",
    )
    return tuple(dict.fromkeys((*own, _others(plan), on_tensors(plan), tensors_fit(plan), modules_fit(plan))))


def entry_text(plan: RegionPlan, module_names: frozenset[str], classes: frozenset[str], paths: Paths | None) -> str:
    """The functions. module_names: globals that no parameter may hide. classes: of the file, that are modules'. paths:
    what `paths_of` says of the plan"""
    region, scope = plan.region, Scope(module_names)
    lasts = paths is not None
    if is_direct(plan):
        names = [scope.unique(name) for name in arguments(plan)]
        given = [f"{name}: torch.Tensor" for name in names]
        test = _test(plan, given, _both(plan, names, lasts))
        called = call("return ", _by_steps(plan), names, width=104)
        return test if is_alone(plan) else "\n".join([test, "", "", *_replaced(plan, given, called)])
    read = read_of(plan, scope, classes)
    renamed, tested, guards, tests = read.parameters, read.tensors, list(read.guards), list(read.tests)
    tensors = {live_in.expression for live_in in region.live_ins}
    parameters = [f"{new}: {'torch.Tensor' if old in tensors else 'Any'}" for old, new in renamed.items()]
    given = [*renamed.values(), *read.items]
    known = call("if not _dynamo() and ", f"_{plan.name}_known", given, ":") if lasts else []
    others: list[str] = []
    if lasts:
        bound, also = hoisted(looked_up(plan, read.things, guards), Scope({*module_names, *renamed.values()}))
        others = [*bound, f"return {' and '.join(map(_bracketed, also)) or True}"]
        known += [f"    {line}" for line in others]
        taken = Scope({*module_names, *renamed.values()})  # what is an item where it is called has a name here
        names = [*renamed.values(), *(taken.unique("item") for _ in read.items)]
        tests += [*call("def ", _others(plan), names, ":", width=110), *(f"    {line}" for line in others), "", ""]
        refused = call("if not _dynamo() and ", f"_{plan.name}_refused", given, ":")
        differs = [f"_{plan.name}_differs({', '.join(given)})", f"not {_others(plan)}({', '.join(given)})"]
        known += [*refused, "    return False", f"if not _dynamo() and {' and '.join(differs)}:", "    return False"]
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
    after = call(") or ", "_learn_no", [repr(plan.name), _others(plan), *given], width=100) if lasts else [")"]
    test = [
        "try:",
        *(f"    {line}" for line in known),
        *(["    _find_file()"] if any("_here[" in line for line in bindings) else []),
        *(f"    {line}" for line in bindings),
        "    return (",
        *(f"        {line}" for line in lines),
        *(f"    {line}" for line in after),
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


def _modules_fit(plan: RegionPlan, checks: Sequence[str], modules: Iterable[str]) -> list[str]:
    """The test of modules, which is made again only when something about them has changed."""
    scope = Scope({"self"})
    names = {module: module if module.isidentifier() else scope.unique(name_for(module)) for module in modules}
    bindings, checks = hoisted([substituted(check, names) for check in checks], Scope(names.values()))
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


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _arguments_of(text: str) -> list[str]:
    found = expression_of(text)
    assert isinstance(found.tree, ast.Call)
    return [found.of(argument) for argument in found.tree.args]


def _bracketed(check: str) -> str:
    """A condition as text that can stand beside `and`."""
    match expression_of(check).tree:
        case ast.BoolOp(ast.Or()) | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
            return f"({check})"
        case _:
            return check
